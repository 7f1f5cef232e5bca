//! Random modules that always verify: the programs that property tests run
//! through passes, printers and executors.
//!
//! ```text
//! random_module ── steps: one random op (or norm) on values of the pool
//!                    ├── graph: the pool, and ops that keep values tame
//!                    ├── flow: calls, branches and loops
//!                    └── shapes: random dims, and other dims of as many elements
//! large_module  ── a long chain of norms and activations, for benches
//! ```
//!
//! The values of a random module stay near 1 on ordinary inputs, and no op that jumps (a
//! comparison, a rounding) is applied to a float sum. Two correct evaluations in different
//! orders therefore differ by little.

mod flow;
pub(crate) mod graph;
mod large;
mod norm;
pub(crate) mod rng;
mod shapes;
mod steps;
#[cfg(test)]
mod tests;

use tilewright_ir::{BuildError, Builder, ElementType, OpMetadata, Verified, verify};

pub use large::large_module;

use graph::{Graph, Shared};
use rng::Rng;

/// The options of random modules.
#[derive(Clone, Debug)]
pub struct Options {
    /// About how many instructions the entry gets.
    pub instructions: usize,
    /// No array has more elements.
    pub max_elements: i64,
    /// The types of arrays, the more often named the more frequent: `pred`,
    /// integers of 8 bits or more, floats of 16 bits or more, and complex numbers.
    pub element_types: Vec<ElementType>,
    /// How likely each kind of step is.
    pub weights: Weights,
    /// How many reduces of a hundred start from a value that is not neutral.
    pub odd_init_percent: u32,
    /// How many arrays of a hundred have a dim of size 0.
    pub empty_percent: u32,
    /// Whether instructions say where they come from.
    pub metadata: bool,
}

/// How likely each kind of step is, relative to the others; 0 is never.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// A parameter, constant or iota.
    pub input: u32,
    /// An elementwise op.
    pub elementwise: u32,
    /// A comparison and what it chooses, or a clamp.
    pub choose: u32,
    /// A reshape.
    pub reshape: u32,
    /// A broadcast.
    pub broadcast: u32,
    /// A transpose.
    pub transpose: u32,
    /// A conversion to another element type.
    pub convert: u32,
    /// A reduce, often of a reshape.
    pub reduce: u32,
    /// A whole norm: reshape, statistics, back to the old dims.
    pub norm: u32,
    /// A computation of its own and a call of it.
    pub call: u32,
    /// Two computations, of which one is chosen.
    pub branch: u32,
    /// A loop of a few turns.
    pub repeat: u32,
    /// An instruction that is there already, or a value through a tuple.
    pub duplicate: u32,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            input: 6,
            elementwise: 24,
            choose: 6,
            reshape: 16,
            broadcast: 8,
            transpose: 4,
            convert: 4,
            reduce: 14,
            norm: 6,
            call: 3,
            branch: 2,
            repeat: 2,
            duplicate: 5,
        }
    }
}

impl Weights {
    /// Returns the weights as a list, in the order of the fields.
    fn list(&self) -> [u32; 13] {
        let Self { input, elementwise, choose, reshape, broadcast, transpose, .. } = *self;
        let Self { convert, reduce, norm, call, branch, repeat, duplicate, .. } = *self;
        [
            input,
            elementwise,
            choose,
            reshape,
            broadcast,
            transpose,
            convert,
            reduce,
            norm,
            call,
            branch,
            repeat,
            duplicate,
        ]
    }
}

impl Default for Options {
    fn default() -> Self {
        use ElementType::{BF16, C64, F16, F32, F64, Pred, S8, S32, U32};
        Self {
            instructions: 60,
            max_elements: 1024,
            element_types: vec![
                F32, F32, F32, F32, F32, BF16, BF16, F16, F64, S32, S32, S8, U32, Pred, C64,
            ],
            weights: Weights::default(),
            odd_init_percent: 25,
            empty_percent: 6,
            metadata: true,
        }
    }
}

impl Options {
    /// Modules of about so many instructions.
    pub fn of_size(instructions: usize) -> Self {
        Self { instructions, ..Self::default() }
    }

    /// Mostly norms over reshapes, in `f32`: what the cost-gated passes look for.
    pub fn norms() -> Self {
        let weights = Weights { norm: 40, reduce: 20, ..Weights::default() };
        Self { element_types: vec![ElementType::F32], weights, ..Self::default() }
    }
}

/// Returns the random module of a seed: the same on every machine.
///
/// The entry takes a few arrays and yields one, or a tuple of several. Some
/// instructions are dead.
#[expect(clippy::panic, reason = "a generator of wrong modules is itself the failure to report")]
pub fn random_module(seed: u64, options: &Options) -> Verified {
    match build(seed, options) {
        Ok(module) => module,
        Err(error) => panic!("the generator made a wrong module of seed {seed}: {error}"),
    }
}

fn build(seed: u64, options: &Options) -> Result<Verified, BuildError> {
    let mut rng = Rng::new(seed);
    let mut shared = Shared::new(options);
    let mut builder = Builder::new(&format!("random_{seed}"));
    let mut graph = Graph::new(&mut builder, &mut rng, &mut shared);
    for _ in 0..2 {
        graph.input()?;
    }
    while graph.len() < options.instructions {
        graph.step()?;
    }
    let root = graph.outputs()?;
    let module = builder.finish(root)?;
    if options.metadata { with_metadata(module, &mut rng) } else { Ok(module) }
}

/// Says of most instructions where they come from.
fn with_metadata(module: Verified, rng: &mut Rng) -> Result<Verified, BuildError> {
    let mut module = module.into_inner();
    for computation in module.computations().to_vec() {
        let ids: Vec<_> = module.instructions(computation).collect();
        for (line, id) in (1i64..).zip(ids) {
            if rng.chance(80) {
                let name = module.opcode(id).name();
                let metadata = OpMetadata {
                    op_type: name.into(),
                    op_name: format!("jit(random)/block_{}/{name}", line / 8).into(),
                    source_file: "random.py".into(),
                    source_line: line,
                    ..OpMetadata::default()
                };
                module.set_metadata(id, metadata);
            }
        }
    }
    Ok(verify(module)?)
}

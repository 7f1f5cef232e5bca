//! Large modules for benches: a chain of layers as front ends print them, made
//! in time linear in the number of instructions.

use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{
    BuildError, Builder, CompId, ElementType, InstId, Literal, OpMetadata, Opcode, Shape, Verified,
    verify,
};

use super::graph::Made;
use super::rng::Rng;

const F32: ElementType = ElementType::F32;
const IMAGE: [i64; 4] = [2, 8, 8, 32];
const GROUPED: [i64; 5] = [2, 8, 8, 4, 8];
/// The instructions of a reducer, and more than those of any layer.
const REDUCER: usize = 3;
const LAYER: usize = 40;

/// Returns a verified module of exactly so many instructions in all computations (at least 60):
/// layers of group norms, activations, dots and rearrangements. Every reduce has a computation
/// of its own and every instruction of the entry says where it comes from, as in what JAX
/// prints.
#[expect(clippy::panic, reason = "a generator of wrong modules is itself the failure to report")]
pub fn large_module(instructions: usize, seed: u64) -> Verified {
    match build(instructions.max(60), seed) {
        Ok(module) => module,
        Err(error) => panic!("the generator made a wrong large module of seed {seed}: {error}"),
    }
}

fn build(instructions: usize, seed: u64) -> Made<Verified> {
    let mut rng = Rng::new(seed);
    let mut chain = LayerChain::new()?;
    while chain.instructions() + LAYER < instructions {
        let kinds: [(&str, Layer); 6] = [
            ("group_norm", LayerChain::group_norm),
            ("group_norm", LayerChain::group_norm),
            ("relu", LayerChain::relu),
            ("dense", LayerChain::dense),
            ("shuffle", LayerChain::shuffle),
            ("mask", LayerChain::mask),
        ];
        let (name, layer) = kinds[rng.below(kinds.len())];
        chain.layers.push((chain.entry_len(), name));
        let before = chain.x;
        layer(&mut chain)?;
        if rng.chance(50) {
            // A residual connection, halved so that sums do not grow.
            let sum = chain.b.binary(Opcode::Add, chain.x, before)?;
            let half = chain.number(0.5, &IMAGE)?;
            chain.x = chain.b.binary(Opcode::Multiply, sum, half)?;
        }
    }
    chain.layers.push((chain.entry_len(), "head"));
    while chain.instructions() < instructions {
        chain.x = chain.b.unary(Opcode::Negate, chain.x)?;
    }
    let LayerChain { b, x, layers, .. } = chain;
    with_metadata(b.finish(x)?, &layers)
}

/// Says of the entry's instructions where they come from: each layer is a
/// function of its own.
fn with_metadata(module: Verified, layers: &[(usize, &str)]) -> Made<Verified> {
    let mut module = module.into_inner();
    let ids: Vec<InstId> = module.entry().map_or(Vec::new(), |e| module.instructions(e).collect());
    let mut layer = 0;
    for (at, id) in ids.into_iter().enumerate() {
        while layers.get(layer).is_some_and(|(first, _)| *first <= at) {
            layer += 1;
        }
        let (first, kind) = layer.checked_sub(1).map_or((0, "input"), |l| layers[l]);
        let name = module.opcode(id).name();
        let metadata = OpMetadata {
            op_name: format!("jit(train_step)/jit(main)/layers_{layer}/{kind}/{name}").into(),
            source_file: "/home/user/project/model/layers.py".into(),
            source_line: i64::try_from(100 + at - first).unwrap_or(0),
            ..OpMetadata::default()
        };
        module.set_metadata(id, metadata);
    }
    Ok(verify(module)?)
}

type Layer = fn(&mut LayerChain) -> Made<()>;

struct LayerChain {
    b: Builder,
    /// The array that goes from layer to layer.
    x: InstId,
    scale: InstId,
    weights: InstId,
    zero: InstId,
    /// Called by many layers.
    relu: CompId,
    /// Instructions outside of the entry.
    called: usize,
    /// Where each layer begins in the entry, and what it is.
    layers: Vec<(usize, &'static str)>,
}

impl LayerChain {
    fn new() -> Made<Self> {
        let mut b = Builder::new("jit_train_step");
        let relu = b.computation("relu", |b| {
            let x = b.parameter("x", Shape::array(F32, IMAGE))?;
            let zero = scalar(b, 0.0)?;
            let zeros = b.broadcast(zero, IMAGE, [])?;
            b.binary(Opcode::Maximum, x, zeros)
        })?;
        let x = b.parameter("x", Shape::array(F32, IMAGE))?;
        let scale = b.parameter("scale", Shape::array(F32, [32]))?;
        let weights = b.parameter("weights", Shape::array(F32, [32, 32]))?;
        let zero = scalar(&mut b, 0.0)?;
        Ok(Self { b, x, scale, weights, zero, relu, called: 4, layers: Vec::new() })
    }

    fn entry_len(&self) -> usize {
        let module = self.b.module();
        module.entry().map_or(0, |entry| module.computation(entry).len())
    }

    fn instructions(&self) -> usize {
        self.entry_len() + self.called
    }

    fn number(&mut self, number: f32, dims: &[i64]) -> Made<InstId> {
        let scalar = scalar(&mut self.b, number)?;
        self.b.broadcast(scalar, dims, [])
    }

    /// Returns the mean over each group.
    fn mean(&mut self, grouped: InstId) -> Made<InstId> {
        let add = self.b.reducer(Opcode::Add, F32)?;
        self.called += REDUCER;
        let sum = self.b.reduce(grouped, self.zero, [1, 2, 4], add)?;
        let count = self.number(512.0, &[2, 4])?;
        self.b.binary(Opcode::Divide, sum, count)
    }

    fn group_norm(&mut self) -> Made<()> {
        let grouped = self.b.reshape(self.x, GROUPED)?;
        let mean = self.mean(grouped)?;
        let mean = self.b.broadcast(mean, GROUPED, [0, 3])?;
        let centred = self.b.binary(Opcode::Subtract, grouped, mean)?;
        let squares = self.b.binary(Opcode::Multiply, centred, centred)?;
        let variance = self.mean(squares)?;
        let epsilon = self.number(1e-2, &[2, 4])?;
        let variance = self.b.binary(Opcode::Add, variance, epsilon)?;
        let inverse = self.b.unary(Opcode::Rsqrt, variance)?;
        let inverse = self.b.broadcast(inverse, GROUPED, [0, 3])?;
        let normal = self.b.binary(Opcode::Multiply, centred, inverse)?;
        let normal = self.b.reshape(normal, IMAGE)?;
        let scale = self.b.broadcast(self.scale, IMAGE, [3])?;
        self.x = self.b.binary(Opcode::Multiply, normal, scale)?;
        Ok(())
    }

    fn relu(&mut self) -> Made<()> {
        self.x = self.b.call(self.relu, [self.x])?;
        Ok(())
    }

    fn dense(&mut self) -> Made<()> {
        let rows = self.b.reshape(self.x, [128, 32])?;
        let product = self.b.dot(rows, self.weights)?;
        let bias = self.b.broadcast(self.scale, [128, 32], [1])?;
        let sum = self.b.binary(Opcode::Add, product, bias)?;
        let bounded = self.b.unary(Opcode::Tanh, sum)?;
        self.x = self.b.reshape(bounded, IMAGE)?;
        Ok(())
    }

    /// The channels' halves change places, height and width too.
    fn shuffle(&mut self) -> Made<()> {
        let turned = self.b.transpose(self.x, [0, 2, 1, 3])?;
        let first = self.b.slice(turned, [0; 4], [2, 8, 8, 16], [1; 4])?;
        let second = self.b.slice(turned, [0, 0, 0, 16], IMAGE, [1; 4])?;
        self.x = self.b.concatenate([second, first], 3)?;
        Ok(())
    }

    /// Makes the elements before the diagonal small.
    fn mask(&mut self) -> Made<()> {
        let index = Shape::array(ElementType::S32, IMAGE);
        let rows = self.b.iota(index.clone(), 1)?;
        let columns = self.b.iota(index, 2)?;
        let keep = self.b.compare(Direction::Ge, rows, columns)?;
        let small = self.number(-1.0, &IMAGE)?;
        let chosen = self.b.select(keep, self.x, small)?;
        let pair = self.b.tuple([chosen, keep])?;
        self.x = self.b.get_tuple_element(pair, 0)?;
        Ok(())
    }
}

fn scalar(b: &mut Builder, number: f32) -> Result<InstId, BuildError> {
    b.constant(Literal::scalar(F32, number)?)
}

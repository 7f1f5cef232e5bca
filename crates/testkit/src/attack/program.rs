//! Random programs whose uses of reductions are nasty.
//!
//! ```text
//! x, y [B, S, C] or [B, C, S], vectors along B and C
//!   front      products and sums with what varies along some dims, reshapes, transposes
//!   statistic  along rows, columns, groups or all (`statistics.rs`)
//!   finish     back to the image's dims, scaled and shifted
//! then the results, their gradients, tangents or Hessian-vector products
//! ```

use tilewright_ir::{Dims, ElementType, InstId, Op, Opcode, Verified};

use super::ad::{forward, reverse};
use super::draft::{Draft, Made};
use super::statistics::{Along, OF_FLOATS, OF_INTEGERS};
use crate::generate::rng::Rng;

/// How large a program's arrays are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Images.
    pub batch: i64,
    /// Places of an image.
    pub space: i64,
    /// Groups of channels.
    pub groups: i64,
    /// Channels of a group.
    pub width: i64,
}

/// A random program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The module: its entry takes arrays of one type and yields a tuple.
    pub module: Verified,
    /// The parts of the program, in words.
    pub what: String,
}

impl Sizes {
    /// The sizes that a seed has, unless they are shrunk.
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x51ee5);
        let sizes: &[[i64; 4]] = &[
            [32, 1, 4, 8],
            [16, 1, 8, 16],
            [16, 1, 4, 4],
            [64, 1, 4, 16],
            [8, 16, 4, 8],
            [4, 16, 4, 16],
            [16, 8, 2, 8],
            [64, 1, 16, 8],
            [128, 1, 1, 128],
            [2, 64, 8, 4],
            [6, 5, 3, 7],
            [256, 1, 2, 32],
        ];
        let &[batch, space, groups, width] = rng.pick(sizes).unwrap_or(&[16, 1, 4, 4]);
        Self { batch, space, groups, width }
    }

    /// Smaller ones, the smallest first.
    pub fn smaller(self) -> Vec<Self> {
        let Self { batch, space, groups, width } = self;
        let all = [[2, 1, 1, 2], [2, 1, 2, 2], [2, 2, 2, 2], [4, 1, 1, 4], [4, 2, 2, 4]];
        let halves = [
            [batch / 2, space, groups, width],
            [batch, space / 2, groups, width],
            [batch, space, groups / 2, width],
            [batch, space, groups, width / 2],
        ];
        let sizes = all.into_iter().chain(halves);
        let sizes = sizes.map(|[batch, space, groups, width]| Self { batch, space, groups, width });
        let elements = |s: &Self| s.batch * s.space * s.groups * s.width;
        sizes.filter(|s| elements(s) > 0 && elements(s) < elements(&self)).collect()
    }
}

/// Returns the program of a seed, of these sizes: of the same structure whatever they are.
///
/// # Panics
/// If the generator makes a module that does not verify.
#[expect(clippy::panic, reason = "a generator of wrong modules is itself the failure to report")]
pub fn program(seed: u64, sizes: Sizes) -> Program {
    match Sketch::new(seed, sizes).and_then(|sketch| sketch.finish(seed)) {
        Ok(program) => program,
        Err(error) => panic!("the generator made a wrong module of seed {seed}: {error}"),
    }
}

struct Sketch {
    d: Draft,
    rng: Rng,
    sizes: Sizes,
    element: ElementType,
    /// Dims of images, and which of them are batch, space and channels.
    dims: Dims,
    space: usize,
    channels: usize,
    images: Vec<InstId>,
    /// Vectors along a dim of images.
    vectors: Vec<(InstId, usize)>,
    what: Vec<String>,
}

impl Sketch {
    fn new(seed: u64, sizes: Sizes) -> Made<Self> {
        use ElementType::{BF16, F16, F32, F64, S8, S32};
        let mut rng = Rng::new(seed);
        let elements =
            [F32, F32, F32, F32, F32, F32, F32, F32, F32, F32, F32, BF16, BF16, F16, F64, S32, S8];
        let element = rng.pick(&elements).copied().unwrap_or(F32);
        let c = sizes.groups * sizes.width;
        let channels_first = rng.chance(30);
        let (dims, space, channels) = if channels_first {
            ([sizes.batch, c, sizes.space], 2, 1)
        } else {
            ([sizes.batch, sizes.space, c], 1, 2)
        };
        let mut d = Draft::new(&format!("attack_{seed}"));
        let images = ["x", "y"].iter().map(|name| d.parameter(name, element, &dims));
        let images = images.collect::<Made<Vec<_>>>()?;
        let mut vectors = Vec::new();
        for (name, dim) in [("row", 0), ("scale", channels), ("shift", channels)] {
            vectors.push((d.parameter(name, element, &[dims[dim]])?, dim));
        }
        let what = vec![format!("{element}{dims:?}")];
        let dims = Dims::from_slice(&dims);
        Ok(Self { d, rng, sizes, element, dims, space, channels, images, vectors, what })
    }

    fn finish(mut self, seed: u64) -> Made<Program> {
        let parameters: Vec<InstId> =
            self.images.iter().copied().chain(self.vectors.iter().map(|&(v, _)| v)).collect();
        let branches = if self.rng.chance(65) { 1 } else { 2 };
        let mut outputs = Vec::new();
        for _ in 0..branches {
            outputs.push(self.branch()?);
        }
        let mut results = outputs.clone();
        if self.element.is_float() {
            results.extend(self.derivatives(&outputs, &parameters)?);
        }
        let results = results.into_iter().map(|r| self.narrowed(r)).collect::<Made<Vec<_>>>()?;
        let root = self.d.b.op(Op::Tuple, &results)?;
        let what = format!("seed {seed}: {}", self.what.join("; "));
        Ok(Program { module: self.d.b.finish(root)?, what })
    }

    fn say(&mut self, what: impl Into<String>) {
        self.what.push(what.into());
    }

    /// In the program's type again.
    fn narrowed(&mut self, value: InstId) -> Made<InstId> {
        self.d.convert(value, self.element)
    }

    fn branch(&mut self) -> Made<InstId> {
        let mut x = self.images[0];
        let steps = [0, 0, 0, 1, 1, 2, 3, 4][self.rng.below(8)];
        for _ in 0..steps {
            x = self.front(x)?;
        }
        let wide = self.element.is_float() && self.element.bits() == 16 && self.rng.chance(50);
        if wide {
            x = self.d.convert(x, ElementType::F32)?;
            self.say("in f32");
        }
        let (mut view, reduced) = self.view(x)?;
        for _ in 0..[0, 0, 1, 2, 2, 3][self.rng.below(6)] {
            view = self.inner(view, &reduced)?;
        }
        let statistics = if self.element.is_float() { OF_FLOATS } else { OF_INTEGERS };
        let Some(&(name, statistic)) = self.rng.pick(statistics) else { return Ok(x) };
        self.say(format!("{name} along {reduced:?} of {:?}", self.d.dims(view)?));
        let along = Along { x: view, reduced: &reduced };
        let result = statistic(&mut self.d, &mut self.rng, &along)?;
        if self.d.dims(result)?.len() != self.d.dims(view)?.len() {
            return Ok(result);
        }
        let elements: i64 = self.dims.iter().product();
        let same = self.d.dims(result)?.iter().product::<i64>() == elements;
        if !same || self.rng.chance(30) {
            return Ok(result);
        }
        let dims = self.dims.clone();
        let mut result = self.d.reshape(result, &dims)?;
        for _ in 0..self.rng.below(3) {
            result = self.front(result)?;
        }
        Ok(result)
    }

    /// Returns an array in other dims, and along which of them something is computed.
    fn view(&mut self, x: InstId) -> Made<(InstId, Dims)> {
        let Sizes { batch, space, groups, width } = self.sizes;
        let last = self.channels == 2;
        let grouped =
            if last { [batch, space, groups, width] } else { [batch, groups, width, space] };
        Ok(match self.rng.below(8) {
            0 | 1 => (x, Dims::from_slice(&[i64::try_from(self.channels).unwrap_or_default()])),
            2 => (x, Dims::from_slice(&[1, 2])),
            3 => (x, Dims::from_slice(&[0, i64::try_from(self.space).unwrap_or_default()])),
            // Groups of channels, of a whole image and of each place.
            4 | 5 => {
                let x = self.d.reshape(x, &grouped)?;
                (x, Dims::from_slice(if last { &[1, 3] } else { &[2, 3] }))
            }
            6 => {
                let x = self.d.reshape(x, &grouped)?;
                (x, Dims::from_slice(if last { &[3] } else { &[2] }))
            }
            _ => {
                let x = self.d.b.transpose(x, [2, 0, 1])?;
                (x, Dims::from_slice(if self.rng.chance(50) { &[0] } else { &[1, 2] }))
            }
        })
    }

    /// Returns a sum or product of an array with something of its dims, often constant along
    /// those that are about to be reduced.
    fn inner(&mut self, x: InstId, reduced: &[i64]) -> Made<InstId> {
        let (element, dims) = (self.d.element(x)?, self.d.dims(x)?);
        let opcodes = [Opcode::Add, Opcode::Subtract, Opcode::Multiply];
        let opcode = self.rng.pick(&opcodes).copied().unwrap_or(Opcode::Add);
        let is_reduced = |dim: usize| i64::try_from(dim).is_ok_and(|d| reduced.contains(&d));
        let other = match self.rng.below(8) {
            0 | 1 => {
                self.say(format!("{opcode} what is constant along {reduced:?}"));
                let kept: Dims =
                    (0..dims.len()).filter(|&d| !is_reduced(d)).map(|d| dims[d]).collect();
                let small = self.d.parameter("small", element, &kept)?;
                self.d.spread(small, x, reduced)?
            }
            2 => self.mean_along_other(x, opcode)?,
            3 => {
                self.say(format!("{opcode} its mean"));
                let mean = Along { x, reduced }.mean(&mut self.d, &mut self.rng, x)?;
                self.d.spread(mean, x, reduced)?
            }
            4 | 5 => {
                self.say(format!("{opcode} another image"));
                self.d.parameter("other", element, &dims)?
            }
            _ => {
                let dim = self.rng.below(dims.len());
                self.say(format!("{opcode} a vector along {dim}"));
                let vector = self.d.parameter("vector", element, &[dims[dim]])?;
                self.d.along(vector, x, dim)?
            }
        };
        self.d.bin(opcode, x, other)
    }

    /// Returns the mean along all dims but one, repeated as if it belonged to another dim that
    /// is as long, if there is one.
    fn mean_along_other(&mut self, x: InstId, opcode: Opcode) -> Made<InstId> {
        let dims = self.d.dims(x)?;
        let pairs: Vec<(usize, usize)> = (0..dims.len())
            .flat_map(|own| (0..dims.len()).map(move |other| (own, other)))
            .filter(|&(own, other)| own != other && dims[own] == dims[other] && dims[own] > 1)
            .collect();
        let last = dims.len() - 1;
        let (own, other) = self.rng.pick(&pairs).copied().unwrap_or((last, last));
        self.say(format!("{opcode} its mean of dim {own} along dim {other}"));
        let rest: Dims =
            (0i64..).take(dims.len()).filter(|&d| usize::try_from(d) != Ok(own)).collect();
        let mean = Along { x, reduced: &rest }.mean(&mut self.d, &mut self.rng, x)?;
        self.d.along(mean, x, other)
    }

    /// One more operation on an image.
    fn front(&mut self, x: InstId) -> Made<InstId> {
        let element = self.d.element(x)?;
        let kind = if element.is_float() { self.rng.below(13) } else { self.rng.below(9) };
        match kind {
            0..=8 => {
                let mut opcodes =
                    vec![Opcode::Add, Opcode::Subtract, Opcode::Subtract, Opcode::Multiply];
                if element.is_float() {
                    opcodes.push(Opcode::Multiply);
                }
                let opcode = self.rng.pick(&opcodes).copied().unwrap_or(Opcode::Add);
                let other = self.other(x)?;
                self.say(opcode.name());
                self.d.bin(opcode, x, other)
            }
            9 => {
                let zero = self.d.splat(x, 0.0)?;
                self.say("relu");
                self.d.bin(Opcode::Maximum, x, zero)
            }
            10 => {
                self.say("tanh");
                self.d.un(Opcode::Tanh, x)
            }
            11 => {
                let other = self.other(x)?;
                let size = self.d.un(Opcode::Abs, other)?;
                let size = self.d.plus(size, 1.0)?;
                self.say("divide");
                self.d.div(x, size)
            }
            _ => {
                let factor = [3.0, 0.25, 1e-3, 1.0 / 3.0][self.rng.below(4)];
                self.say(format!("times {factor}"));
                self.d.times(x, factor)
            }
        }
    }

    /// Something to combine an image with: a vector, the other image, or a statistic of
    /// the image itself along some of its dims.
    fn other(&mut self, x: InstId) -> Made<InstId> {
        let element = self.d.element(x)?;
        let choice = self.rng.below(10);
        if choice < 5 {
            let Some(&(vector, dim)) = self.rng.pick(&self.vectors) else { return Ok(x) };
            self.say(if dim == 0 { "per row" } else { "per channel" });
            let vector = self.d.convert(vector, element)?;
            return self.d.along(vector, x, dim);
        }
        if choice == 5 {
            self.say("y");
            return self.d.convert(self.images[1], element);
        }
        let all: [&[i64]; 5] = [&[1, 2], &[2], &[0, 1], &[0], &[1]];
        let reduced = all[self.rng.below(5)];
        let statistic = match self.rng.below(3) {
            0 => self.d.max(x, reduced)?,
            _ => Along { x, reduced }.mean(&mut self.d, &mut self.rng, x)?,
        };
        self.say(format!("own statistic along {reduced:?}"));
        self.d.spread(statistic, x, reduced)
    }

    /// Derivatives of the outputs, of some kind, or none.
    fn derivatives(&mut self, outputs: &[InstId], parameters: &[InstId]) -> Made<Vec<InstId>> {
        let kind = self.rng.below(10);
        if kind < 4 {
            return Ok(Vec::new());
        }
        let of = if self.rng.chance(50) { &parameters[..1] } else { parameters };
        if kind == 8 {
            self.say("tangents");
            return self.tangents(outputs);
        }
        let mut cotangents = Vec::new();
        for &output in outputs {
            cotangents.push((output, self.cotangent(output)?));
        }
        let gradients = reverse(&mut self.d, &cotangents, of)?;
        if kind == 9 {
            self.say("Hessian-vector product");
            return self.tangents(&gradients);
        }
        self.say("gradients");
        Ok(gradients)
    }

    fn tangents(&mut self, of: &[InstId]) -> Made<Vec<InstId>> {
        let (x, dims) = (self.images[0], self.dims.clone());
        let tangent = self.d.parameter("tangent", self.element, &dims)?;
        forward(&mut self.d, &[(x, tangent)], of)
    }

    /// Returns the cotangent with which the gradient begins: ones, as for a sum, or an input.
    fn cotangent(&mut self, output: InstId) -> Made<InstId> {
        if self.rng.chance(35) {
            return self.d.splat(output, 1.0);
        }
        let (element, dims) = (self.d.element(output)?, self.d.dims(output)?);
        self.d.parameter("cotangent", element, &dims)
    }
}

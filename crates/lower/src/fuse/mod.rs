//! Several instructions as one kernel.
//!
//! What a kernel reads is read once for every block that is worked on. Small
//! arrays are copied to vector memory as a whole; what is reduced of these is
//! computed there, in *stages* before the image is walked. The image is the
//! largest result: its vectors are computed one by one, from blocks that come
//! while others are worked on. What is reduced of an image along dims of which a
//! block has all, the rows, is known before the block is written: softmax is one
//! kernel.

mod emit;
mod image;
mod leaf;
mod outline;
mod partition;
mod reduced;
mod scope;
mod stage;
mod total;
mod view;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{ArrayShape, InstId, Module, Op};
use tilewright_target::{Physical, Target};

use crate::kernel::build::Build;
use crate::kernel::{Expr, Kernel, Place, Space, Statement};
use crate::reduce::blocks::signed;
use crate::reduce::state::Statements;
use crate::reduce::{LowerError, Reduction};
use emit::Home;

pub use outline::outline;
pub use partition::{Lowered, groups};

/// Arrays of at most this part of vector memory are there as a whole: as many as
/// costs take to stay on the chip.
const STAYS: u64 = 64;

/// More instructions than this are not one kernel.
const MOST_FUSED: usize = 512;

/// Instructions that become one kernel: all that the outputs need down to the
/// inputs.
#[derive(Clone, Debug)]
pub struct Group {
    /// What the kernel is called.
    pub name: String,
    /// What it reads, in the order of its inputs.
    pub inputs: Vec<InstId>,
    /// What it writes, in the order of its outputs: all of the same dims.
    pub outputs: Vec<InstId>,
}

/// What a reduce of a module does.
pub type Reductions<'a> = dyn Fn(InstId) -> Option<Reduction> + 'a;

/// The kernel of a group.
///
/// # Errors
/// If an instruction is none that kernels compute, arrays lie in a way that no
/// kernel can walk on this target, or there is too little room.
pub fn fused(
    module: &Module,
    group: &Group,
    reductions: &Reductions<'_>,
    target: &Target,
) -> Result<Kernel, LowerError> {
    let fusion = Fusion::of(module, group, reductions, target)?;
    let kernel = match reduced::totals(&fusion, reductions) {
        Some(totals) => reduced::kernel(&fusion, &totals)?,
        None => fusion.image()?,
    };
    let (used, has) = (kernel.live_registers(target), u64::from(target.vector_registers));
    if used > has {
        return Err(LowerError::Registers { used, has });
    }
    let fits = kernel.vmem_bytes().is_some_and(|bytes| bytes <= target.vector_memory_bytes);
    if fits { Ok(kernel) } else { Err(LowerError::Results) }
}

/// Whether an array stays in vector memory as a whole.
pub fn stays(target: &Target, shape: &ArrayShape) -> bool {
    bytes(target, shape).is_some_and(|bytes| bytes <= target.vector_memory_bytes / STAYS)
}

fn bytes(target: &Target, shape: &ArrayShape) -> Option<u64> {
    Physical::of(target, shape).places()?.checked_mul(shape.element_type.bytes().into())
}

/// Where arrays are.
type Homes = FxHashMap<InstId, Home>;

/// A group, sorted.
pub(crate) struct Fusion<'a> {
    module: &'a Module,
    group: &'a Group,
    target: &'a Target,
    /// The reduces in vector memory, operands before users.
    stages: Vec<(InstId, Reduction)>,
    /// The reduces along rows of the image, operands before users.
    rows: Vec<(InstId, Reduction)>,
    /// The dims of the outputs.
    shape: ArrayShape,
}

impl<'a> Fusion<'a> {
    fn of(
        module: &'a Module,
        group: &'a Group,
        reductions: &'a Reductions<'a>,
        target: &'a Target,
    ) -> Result<Self, LowerError> {
        let shape = |id: InstId| module.array_shape(id).ok_or(LowerError::Unsound);
        let &first = group.outputs.first().ok_or(LowerError::Unsound)?;
        let image = shape(first)?;
        for &output in &group.outputs {
            if shape(output)?.dims() != image.dims() {
                return Err(LowerError::Unlike);
            }
        }
        let (mut stages, mut rows) = (Vec::new(), Vec::new());
        for id in members(module, group)? {
            if !matches!(module.op(id), Op::Reduce(_)) {
                continue;
            }
            let reduction = reductions(id).ok_or(LowerError::Unsound)?;
            let [source] = reduction.arrays.as_slice() else { return Err(LowerError::Unsound) };
            if reduction.neutral.is_none() {
                return Err(LowerError::Unsound);
            }
            let is_output = group.outputs.contains(&id);
            if !is_output && source.shape.dims() == image.dims() {
                rows.push((id, reduction));
            } else if stage::is_small(target, &reduction) {
                stages.push((id, reduction));
            } else if !is_output {
                return Err(LowerError::Results);
            }
        }
        Ok(Self { module, group, target, stages, rows, shape: image.clone() })
    }

    /// A kernel that computes the image.
    fn image(&self) -> Result<Kernel, LowerError> {
        let mut build = Build::new(&self.group.name, &self.target.name);
        let (mut homes, mut body) = self.resident(&mut build)?;
        body.extend(self.staged(&mut build, &mut homes)?);
        body.extend(image::written(self, &mut build, &homes)?);
        Ok(build.finish(body))
    }

    /// Where the inputs are, and copies of those that are small.
    fn resident(&self, build: &mut Build) -> Result<(Homes, Statements), LowerError> {
        let mut homes = Homes::default();
        let (mut copies, mut waits) = (Statements::new(), Statements::new());
        for &input in &self.group.inputs {
            let shape = self.module.array_shape(input).ok_or(LowerError::Unsound)?;
            let places = Physical::of(self.target, shape).places().ok_or(LowerError::TooLarge)?;
            let main = build.buffer("x", Space::In, shape.element_type, places);
            if !stays(self.target, shape) || places == 0 {
                homes.insert(input, Home::Main(main));
                continue;
            }
            let name = self.module.name_of(input);
            let here = build.buffer(name, Space::Vmem, shape.element_type, places);
            homes.insert(input, Home::Resident(here));
            let [to, from] = [here, main].map(|buffer| Place { buffer, at: Expr::ZERO });
            copies.push(Statement::Copy { to, from, len: signed(places)?.into() });
            waits.push(Statement::Wait(here));
        }
        copies.extend(waits);
        Ok((homes, copies))
    }

    /// Computes what is reduced in vector memory.
    fn staged(&self, build: &mut Build, homes: &mut Homes) -> Result<Statements, LowerError> {
        let mut statements = Statements::new();
        for (id, reduction) in &self.stages {
            statements.extend(stage::reduced(self, build, homes, *id, reduction)?);
        }
        Ok(statements)
    }
}

/// All that outputs need down to the inputs, operands first.
fn members(module: &Module, group: &Group) -> Result<Vec<InstId>, LowerError> {
    let mut seen: FxHashSet<InstId> = group.inputs.iter().copied().collect();
    let mut order = Vec::new();
    // Each instruction twice: before its operands, and after.
    let mut open: Vec<(InstId, bool)> = group.outputs.iter().map(|&id| (id, false)).collect();
    while let Some((id, done)) = open.pop() {
        if done {
            order.push(id);
            continue;
        }
        if !seen.insert(id) {
            continue;
        }
        if seen.len() > MOST_FUSED {
            return Err(LowerError::TooLarge);
        }
        open.push((id, true));
        open.extend(module.operands(id).iter().map(|&operand| (operand, false)));
    }
    Ok(order)
}

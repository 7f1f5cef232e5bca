//! Lowers a group of instructions to one kernel.
//!
//! A kernel reads each input once for every block. Small arrays are copied to vector memory as a
//! whole, and their reductions are computed there in *stages*, before the outputs. The vectors of
//! the outputs are computed one by one, from blocks that are copied while other blocks are
//! processed. A block that holds whole rows can be reduced along them before it is written, so
//! softmax is one kernel.

mod emit;
mod load;
mod outputs;
mod reduced;
mod scope;
mod stage;
mod total;
mod view;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{ArrayShape, InstId, Module, Op};
use tilewright_target::{Physical, Target};

use crate::codegen::reduce::ReductionSpec;
use crate::codegen::reduce::blocks::signed;
use crate::codegen::reduce::fused::{Ends, Pass};
use crate::codegen::reduce::state::Statements;
use crate::error::{LowerError, NoRoom, TooLarge, Unsupported, internal};
use crate::kernel::build::Build;
use crate::kernel::{BufferAddress, Expr, Kernel, Space, Statement};
use emit::Home;

/// Largest number of instructions in one kernel.
pub(crate) const MOST_FUSED: usize = 256;

/// Instructions that become one kernel: the outputs and their operands down to the inputs.
#[derive(Clone, Debug)]
pub struct Group {
    /// The name of the kernel.
    pub name: String,
    /// The arrays that it reads, in the order of its inputs.
    pub inputs: Vec<InstId>,
    /// The arrays that it writes, in the order of its outputs. They have the same dims, or all
    /// are small.
    pub outputs: Vec<InstId>,
}

/// The reduction of each reduce of a module.
pub(crate) type Reductions = FxHashMap<InstId, ReductionSpec>;

/// Generates the kernel of a group.
///
/// # Errors
/// Returns an error if kernels do not support an instruction or the layout of an array on this
/// target, or a resource of the target is too small.
pub(crate) fn fused(
    module: &Module,
    group: &Group,
    reductions: &Reductions,
    target: &Target,
) -> Result<Kernel, LowerError> {
    let placed = |error: LowerError| {
        let first = group.outputs.first().map_or("", |&output| module.name_of(output));
        error.at(first).in_kernel(&group.name)
    };
    made(module, group, reductions, target).map_err(placed)
}

fn made(
    module: &Module,
    group: &Group,
    reductions: &Reductions,
    target: &Target,
) -> Result<Kernel, LowerError> {
    // Small arrays are reduced along rows if their users are rows, otherwise in a stage.
    let with = |rows| Fusion::of(module, group, reductions, target, rows)?.kernel();
    let kernel = with(Rows::All).or_else(|_| with(Rows::Large))?;
    let (used, has) = (kernel.live_registers(target), u64::from(target.vector_registers));
    if used > has {
        return Err(NoRoom::Registers { used, has }.into());
    }
    let fits = kernel.vmem_bytes().is_some_and(|bytes| bytes <= target.vector_memory_bytes);
    if fits { Ok(kernel) } else { Err(NoRoom::Results.into()) }
}

/// Returns the shape of an instruction whose result is an array.
fn array(module: &Module, id: InstId) -> Result<&ArrayShape, LowerError> {
    let shape = module.array_shape(id);
    shape.ok_or_else(|| internal("it gives no array").at(module.name_of(id)))
}

/// Checks whether an array is kept in vector memory as a whole.
pub(crate) fn stays(target: &Target, shape: &ArrayShape) -> bool {
    bytes(target, shape).is_some_and(|bytes| bytes <= target.on_chip_bytes())
}

fn bytes(target: &Target, shape: &ArrayShape) -> Option<u64> {
    Physical::of(target, shape).places()?.checked_mul(shape.element_type.bytes().into())
}

/// The memory that holds each array.
type Homes = FxHashMap<InstId, Home>;

/// A group, divided into stages, rows and outputs.
struct Fusion<'a> {
    module: &'a Module,
    group: &'a Group,
    target: &'a Target,
    /// The number of instructions.
    size: usize,
    /// Reductions computed before the outputs, in order.
    stages: Vec<Stage>,
    /// The reductions of arrays with the dims of the outputs along their rows, operands before
    /// users.
    rows: Vec<(InstId, ReductionSpec)>,
}

/// The reductions of arrays with the outputs' dims that are computed row by row, as the outputs
/// are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// All of them.
    All,
    /// Only those whose arrays do not stay in vector memory.
    Large,
}

/// The way a reduction is computed.
enum Role {
    /// In the one pass over a large array.
    Pass,
    /// Along the rows of the outputs, as they are written.
    Row,
    /// In a stage, before its users.
    Stage,
}

/// A stage of reductions, computed before their users.
enum Stage {
    /// A reduction in vector memory, computed result by result.
    Small(Box<(InstId, ReductionSpec)>),
    /// Reductions in one pass over the array that they reduce.
    Pass(Vec<(InstId, ReductionSpec)>),
}

impl<'a> Fusion<'a> {
    fn of(
        module: &'a Module,
        group: &'a Group,
        reductions: &Reductions,
        target: &'a Target,
        rows: Rows,
    ) -> Result<Self, LowerError> {
        let shape = |id: &InstId| array(module, *id);
        let outputs = group.outputs.iter().map(shape).collect::<Result<Vec<_>, _>>()?;
        let dims = outputs.first().ok_or_else(|| internal("a group without outputs"))?.dims();
        let alike = outputs.iter().all(|output| output.dims() == dims);
        if !alike && !outputs.iter().all(|output| stays(target, output)) {
            return Err(Unsupported::Unlike.into());
        }
        let members = members(module, group)?;
        let mut fusion = Self {
            module,
            group,
            target,
            size: members.len(),
            stages: Vec::new(),
            rows: Vec::new(),
        };
        // Reductions of large arrays share one pass; their users come after it.
        let mut passed: Vec<(InstId, ReductionSpec)> = Vec::new();
        let mut after: FxHashSet<InstId> = FxHashSet::default();
        let mut later = Vec::new();
        for id in members {
            let waits = module.operands(id).iter().any(|operand| after.contains(operand));
            if waits {
                after.insert(id);
            }
            if !matches!(module.op(id), Op::Reduce(_)) {
                continue;
            }
            let named = |error: LowerError| error.at(module.name_of(id));
            let reduction = reductions.get(&id).cloned();
            let reduction = reduction.ok_or_else(|| named(Unsupported::Computation.into()))?;
            match fusion.role(id, &reduction, (dims, alike), rows).map_err(named)? {
                Role::Pass if waits => return Err(Unsupported::Unlike.into()),
                Role::Pass => {
                    after.insert(id);
                    passed.push((id, reduction));
                }
                Role::Row => fusion.rows.push((id, reduction)),
                Role::Stage => {
                    let stage = if stage::is_gathered(module, target, id, &reduction) {
                        Stage::Small(Box::new((id, reduction)))
                    } else {
                        Stage::Pass(vec![(id, reduction)])
                    };
                    if waits { later.push(stage) } else { fusion.stages.push(stage) }
                }
            }
        }
        if !passed.is_empty() {
            // A kernel walks large arrays only once.
            let alone = outputs.iter().all(|output| stays(target, output));
            let written = group.outputs.iter().eq(passed.iter().map(|(id, _)| id));
            if !fusion.rows.is_empty() || !(alone || written) {
                return Err(Unsupported::Unlike.into());
            }
            fusion.stages.push(Stage::Pass(passed));
            fusion.stages.extend(later);
        }
        Ok(fusion)
    }

    /// Chooses how a reduction is computed beside outputs whose first has these `dims`. `alike`
    /// says that all outputs have them.
    fn role(
        &self,
        id: InstId,
        reduction: &ReductionSpec,
        (dims, alike): (&[i64], bool),
        rows: Rows,
    ) -> Result<Role, LowerError> {
        let [source] = reduction.arrays.as_slice() else {
            return Err(Unsupported::SeveralArrays.into());
        };
        let is_output = self.group.outputs.contains(&id);
        let has_dims = source.shape.dims() == dims;
        let stays = stays(self.target, &source.shape);
        if !stays && (is_output || !has_dims) {
            return Ok(Role::Pass);
        }
        if reduction.neutral.is_none() {
            return Err(Unsupported::NoIdentity.into());
        }
        let is_row = has_dims && (rows == Rows::All || !stays);
        Ok(if alike && !is_output && is_row { Role::Row } else { Role::Stage })
    }

    fn kernel(&self) -> Result<Kernel, LowerError> {
        let mut build = Build::new(&self.group.name, &self.target.name);
        let (mut homes, mut body) = self.resident(&mut build)?;
        let (last, first) = match self.stages.split_last() {
            Some((Stage::Pass(last), first)) if self.writes(last) => (Some(last), first),
            _ => (None, self.stages.as_slice()),
        };
        for stage in first {
            body.extend(self.staged(&mut build, &mut homes, stage)?);
        }
        body.extend(match last {
            Some(totals) => {
                let written = Ends::Written;
                reduced::passed(self, &mut build, &homes, totals, written)?.statements
            }
            None => outputs::written(self, &mut build, &homes)?,
        });
        Ok(build.finish(body))
    }

    /// Checks whether the outputs are exactly the results of a pass.
    fn writes(&self, totals: &[(InstId, ReductionSpec)]) -> bool {
        self.group.outputs.iter().eq(totals.iter().map(|(id, _)| id))
    }

    /// Emits the stages that come before the outputs.
    fn staged(
        &self,
        build: &mut Build,
        homes: &mut Homes,
        stage: &Stage,
    ) -> Result<Statements, LowerError> {
        match stage {
            Stage::Small(small) => stage::reduced(self, build, homes, small.0, &small.1),
            Stage::Pass(totals) => {
                let Pass { statements, results } =
                    match (reduced::passed(self, build, homes, totals, Ends::Kept), &totals[..]) {
                        (Err(_), [(id, reduction)]) if stage::is_small(self.target, reduction) => {
                            return stage::reduced(self, build, homes, *id, reduction);
                        }
                        (passed, _) => passed?,
                    };
                let ids = totals.iter().map(|(id, _)| *id);
                homes.extend(ids.zip(results.into_iter().map(Home::Resident)));
                Ok(statements)
            }
        }
    }

    /// Emits copies of the small inputs and returns the memory that holds each input.
    fn resident(&self, build: &mut Build) -> Result<(Homes, Statements), LowerError> {
        let mut homes = Homes::default();
        let (mut copies, mut waits) = (Statements::new(), Statements::new());
        for &input in &self.group.inputs {
            let shape = array(self.module, input)?;
            let places = Physical::of(self.target, shape).places().ok_or(TooLarge::Elements)?;
            let main = build.buffer("x", Space::In, shape.element_type, places);
            if !stays(self.target, shape) || places == 0 {
                homes.insert(input, Home::Main(main));
                continue;
            }
            let name = self.module.name_of(input);
            let here = build.buffer(name, Space::Vmem, shape.element_type, places);
            homes.insert(input, Home::Resident(here));
            let [to, from] = [here, main].map(|buffer| BufferAddress { buffer, at: Expr::ZERO });
            copies.push(Statement::Copy { to, from, len: signed(places)?.into() });
            waits.push(Statement::Wait(here));
        }
        copies.extend(waits);
        Ok((homes, copies))
    }
}

/// Returns all instructions of a group, down to its inputs, operands first.
pub(crate) fn members(module: &Module, group: &Group) -> Result<Vec<InstId>, LowerError> {
    let mut seen: FxHashSet<InstId> = group.inputs.iter().copied().collect();
    let (mut order, mut fused) = (Vec::new(), 0usize);
    // Each instruction is visited twice: before its operands and after them.
    let mut open: Vec<(InstId, bool)> = group.outputs.iter().map(|&id| (id, false)).collect();
    while let Some((id, done)) = open.pop() {
        if done {
            order.push(id);
            continue;
        }
        if !seen.insert(id) {
            continue;
        }
        fused += 1;
        if fused > MOST_FUSED {
            return Err(TooLarge::Instructions(MOST_FUSED).into());
        }
        open.push((id, true));
        open.extend(module.operands(id).iter().map(|&operand| (operand, false)));
    }
    Ok(order)
}

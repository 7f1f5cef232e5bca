//! **Give each reduction its own copy of a value that several instructions read.**
//!
//! ```text
//! opt-barrier(c) = c        to the last bit
//!
//! d = f(x, c)      sum d*d,  sum q*d,  r*d     d is stored for the sums
//! becomes          b = opt-barrier(c)    b' = opt-barrier(b)
//!                  d  = f(x, c)          r*d      computed where it is used
//!                  d' = f(x, b)          sum d'*d'
//!                  d" = f(x, b')         sum q*d"     from x, which is there anyway
//! ```
//!
//! A target without `fuses_shared` computes a value within a reduction only if nothing else reads
//! the value. Such a target stores every centred array, converted array and broadcast that two
//! reductions read, and reads it again at once. The compiler's CSE would merge plain copies. CSE
//! does not look through barriers, and the compiler removes barriers only after its last CSE
//! (`OptimizationBarrierExpander` in `xla/service/cpu/cpu_compiler.cc`).
//!
//! The compiler also converts the 16-bit operands of a copy to f32, and merges these conversions
//! with others of the same array. A copy therefore reads such operands through barriers, too
//! (`cost/shared.rs`).
//!
//! A copy includes the operands that the target fuses, down to stored arrays and to arrays much
//! smaller than the value. Each op of a copy computes what the original computes. An engine may
//! contract or vectorise a copy in another way, so sums may differ in the last place, as they may
//! after any edit.
//!
//! The target's table ([`tilewright_target::reductions`]) has the measured times of sums of shared
//! values and of sums of copies, by the ops that compute the value (`rematerialize/sources.rs`). A
//! value is copied if each of its sums was faster with a copy, and the model agrees for the module
//! as a whole.
//!
//! Preconditions:
//! - The reductions are sums, since the maximum of a copy might equal no element of the value.
//! - The value does not stay in vector memory, and is not in a fusion, where nothing is stored.
//! - All arrays are static and row-major. The copied instructions carry no sharding, control edges
//!   or other extras.
//! - The copy consists of elementwise ops, and of broadcasts of much smaller arrays.
//! - No copied instruction reads a large slice or reversed array, nor the result of a convolution
//!   whose features are not its minor dim: XLA convolves with minor features, and transposes the
//!   result wherever it is read (`xla/service/cpu/conv_canonicalization.cc`), once in each copy.
//!
//! A cost-gated pass for targets without `fuses_shared`. It runs last, because equal sums must be
//! merged before.

mod sources;

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, EditError, InstId, Module, Op, Opcode, Position, Use};
use tilewright_target::Target;

use super::add_barrier;
use crate::analysis::reduce::is_plain;
use crate::cost::Residency;
use crate::cost::shared::{
    Shared, fused_computations, shared_values, shares_conversion, widened_for,
};
use crate::driver::Place;
use crate::driver::module_trial::{ModuleTrial, RewriteNote, classes};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct Rematerialize;

impl Pass for Rematerialize {
    fn name(&self) -> &'static str {
        "rematerialize"
    }

    fn summary(&self) -> &'static str {
        "compute anew for each reduction what the target would store for them"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if cx.target.fuses_shared || cx.target.reductions.is_empty() {
            return Ok(0);
        }
        let found = candidates(module, cx);
        let mut begun: Option<ModuleTrial<'_>> = None;
        let mut changes = 0;
        for some in classes(module, found, |copies| copies.members().collect::<Vec<_>>()) {
            let trial = match &mut begun {
                Some(trial) => trial,
                None => begun.insert(ModuleTrial::of(module, cx)?),
            };
            let made = trial.attempt(self, module, cx, |module| {
                let some: Vec<&Copies> = some.iter().filter(|one| one.is_there(module)).collect();
                let notes: Vec<RewriteNote> =
                    some.iter().map(|copies| copies.note(module)).collect();
                for copies in &some {
                    copies.make(module)?;
                }
                Ok((!some.is_empty()).then_some((notes, some.len())))
            })?;
            changes += made.unwrap_or(0);
        }
        if let Some(trial) = begun {
            trial.leave(cx);
        }
        Ok(changes)
    }
}

/// Returns the values of a module of which reductions may get copies.
fn candidates(module: &mut Module, cx: &mut Context<'_>) -> Vec<Copies> {
    let (model, target) = (cx.model(), cx.target);
    let mut found = Vec::new();
    let fusions = fused_computations(module);
    let ledger = cx.ledger(module);
    for &computation in module.computations() {
        if fusions.contains(&computation) {
            continue;
        }
        let fused = |id: InstId| ledger.residency(id) == Residency::Inlined;
        let mut shared: BTreeMap<InstId, Vec<Shared>> = BTreeMap::new();
        let is_small = |id| model.stays_on_chip(model.with_footprint(module.shape(id)));
        for one in shared_values(module, computation, target.library_elements, &fused) {
            if !is_small(one.value) {
                shared.entry(one.value).or_default().push(one);
            }
        }
        let copies = shared.into_values().filter_map(|of| Copies::of(module, of, target, &fused));
        found.extend(copies.filter(|copies| copies.pay(module, &target.reductions)));
    }
    found
}

/// A value that reductions share, the instructions that a copy of it needs, and its readers.
struct Copies {
    value: InstId,
    /// The value and the operands that are copied with it, operands first.
    copied: Vec<CopiedInst>,
    /// The reductions that get a copy, and the users of the value within them.
    reductions: Vec<Shared>,
    /// Whether several reductions share the value.
    several: bool,
}

/// An instruction to copy.
struct CopiedInst {
    id: InstId,
    /// The operands that the copy reads through barriers, so that CSE merges neither the copy nor
    /// the conversions of its operands to f32 with others.
    barred: SmallVec<[InstId; 1]>,
}

impl Copies {
    /// Returns the copies of one value for these reductions; `None` if they cannot have copies.
    fn of(
        module: &Module,
        mut reductions: Vec<Shared>,
        target: &Target,
        fused: &dyn Fn(InstId) -> bool,
    ) -> Option<Self> {
        let value = reductions.first()?.value;
        let copied = copied_insts(module, value, target, fused)?;
        let ids = copied.iter().map(|one| one.id);
        let several = reductions.len() > 1;
        // If only these reductions read the value, the last one keeps the original.
        let readers: FxHashSet<InstId> =
            reductions.iter().flat_map(|one| one.readers.clone()).collect();
        let own: FxHashSet<InstId> = readers.iter().copied().chain(ids).collect();
        if module.uses(value).all(|one| readers.contains(&one.user))
            && !copied.iter().any(|one| shares_conversion(module, one.id, &own, fused))
        {
            reductions.pop();
        }
        (!reductions.is_empty()).then_some(Self { value, copied, reductions, several })
    }

    /// Returns the copied instructions and the users of the value within the reductions.
    fn members(&self) -> impl Iterator<Item = InstId> + '_ {
        let insts = self.copied.iter().map(|one| one.id);
        insts.chain(self.reductions.iter().flat_map(|shared| shared.readers.iter().copied()))
    }

    /// Returns the note.
    fn note(&self, module: &Module) -> RewriteNote {
        let name = |shared: &Shared| format!("`{}`", module.name_of(shared.reduction));
        let reductions: Vec<String> = self.reductions.iter().map(name).collect();
        let name = module.name_of(self.value);
        let what = format!("`{name}` anew for {}", reductions.join(", "));
        RewriteNote { place: Place::of(module, self.value), what }
    }

    /// Checks whether all of [`Self::members`] are still in the module.
    fn is_there(&self, module: &Module) -> bool {
        self.members().all(|id| module.instruction(id).parent().is_some())
    }

    /// Adds the copies, and makes the reductions read them.
    fn make(&self, module: &mut Module) -> Result<(), EditError> {
        for shared in &self.reductions {
            let Some(copy) = self.copy(module)? else { continue };
            for &reader in &shared.readers {
                for place in 0..module.operands(reader).len() {
                    if module.operands(reader).get(place) == Some(&self.value) {
                        module.set_operand(reader, place, copy)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds one copy, which CSE cannot merge with an earlier copy.
    fn copy(&self, module: &mut Module) -> Result<Option<InstId>, EditError> {
        let mut copies: FxHashMap<InstId, InstId> = FxHashMap::default();
        let mut barred: FxHashMap<InstId, InstId> = FxHashMap::default();
        for one in &self.copied {
            for &operand in &one.barred {
                if let Entry::Vacant(entry) = barred.entry(operand) {
                    entry.insert(pass_barrier(module, operand)?);
                }
            }
            let copy = module.copy_instruction(one.id, Position::Before(one.id), |operand| {
                let is_barred = one.barred.contains(&operand);
                if is_barred { &barred } else { &copies }.get(&operand).copied()
            })?;
            copies.insert(one.id, copy);
        }
        Ok(copies.get(&self.value).copied())
    }
}

/// Adds a barrier of `value` and returns it. Earlier barriers of the value read the new one from
/// then on, because CSE could merge two barriers of one value.
fn pass_barrier(module: &mut Module, value: InstId) -> Result<InstId, EditError> {
    let is_barrier = |one: &Use| module.opcode(one.user) == Opcode::OptimizationBarrier;
    let others: Vec<Use> = module.uses(value).filter(is_barrier).collect();
    add_barrier(module, value, &others)
}

/// Returns a value and the fused operands that are copied with it, operands first. `None` if a
/// precondition of the pass does not hold for one of them.
fn copied_insts(
    module: &Module,
    value: InstId,
    target: &Target,
    fused: &dyn Fn(InstId) -> bool,
) -> Option<Vec<CopiedInst>> {
    let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements);
    let most = elements(value)? / i64::from(target.small_part.max(1));
    let most_copied = usize::try_from(target.most_rematerialized).unwrap_or(usize::MAX);
    let is_copied = |id: InstId| {
        let is_copied = !matches!(module.opcode(id), Opcode::Constant | Opcode::Iota);
        is_copied && fused(id) && elements(id).is_some_and(|n| n > most)
    };
    let mut insts: Vec<CopiedInst> = Vec::new();
    let mut met: FxHashSet<InstId> = FxHashSet::default();
    let mut next = vec![(value, false)];
    while let Some((id, operands_are_there)) = next.pop() {
        let copied = module.operands(id).iter().copied().filter(|&operand| is_copied(operand));
        if operands_are_there {
            let mut barred: SmallVec<[InstId; 1]> =
                widened_for(module, id, fused).filter(|&of| elements(of) > Some(most)).collect();
            if copied.count() == 0 {
                barred.push(smallest_operand(module, id)?);
            }
            insts.push(CopiedInst { id, barred });
        } else if met.insert(id) {
            let mut values = [id].into_iter().chain(module.operands(id).iter().copied());
            let are_plain = values.all(|id| module.array_shape(id).is_some_and(is_plain));
            let is_spread = module.opcode(id) == Opcode::Broadcast;
            let is_dear = |&of: &InstId| {
                let is_large = elements(of).is_none_or(|n| n > most);
                is_turned(module, of) || is_large && (is_spread || is_cut(module, of))
            };
            if !are_plain
                || module.operands(id).iter().any(is_dear)
                || module.extras(id).is_some()
                || met.len() > most_copied
            {
                return None;
            }
            next.push((id, true));
            next.extend(copied.map(|operand| (operand, false)));
        }
    }
    Some(insts)
}

/// Checks whether a value is a slice or a reversed array, or an alias of one. The compiler may
/// compute such a value again in each copy, or store it.
fn is_cut(module: &Module, id: InstId) -> bool {
    matches!(
        module.opcode(source(module, id)),
        Opcode::Slice | Opcode::DynamicSlice | Opcode::Reverse
    )
}

/// Returns the value of which `id` is an alias, or `id` itself.
fn source(module: &Module, mut id: InstId) -> InstId {
    while let (Op::OptimizationBarrier | Op::Reshape(_) | Op::Bitcast, &[operand]) =
        (module.op(id), module.operands(id))
    {
        id = operand;
    }
    id
}

/// Checks whether a value is the result of a convolution whose output feature is not its minor dim,
/// or an alias of such a result.
fn is_turned(module: &Module, id: InstId) -> bool {
    let id = source(module, id);
    let Op::Convolution(attrs) = module.op(id) else { return false };
    let rank = module.array_shape(id).and_then(|array| i64::try_from(array.rank()).ok());
    rank.is_none_or(|rank| attrs.dim_labels.output_feature + 1 != rank)
}

fn smallest_operand(module: &Module, id: InstId) -> Option<InstId> {
    let elements = |id: &InstId| module.array_shape(*id).and_then(ArrayShape::num_elements);
    module.operands(id).iter().copied().min_by_key(elements)
}

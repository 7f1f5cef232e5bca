//! **What reductions share is computed anew for each of them.**
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
//! A target that fuses into a reduction only what nothing else uses stores every centred
//! image, converted image and broadcast that two reductions need, to read it again at
//! once. Copies would do if the compiler did not merge what is equal; it does not look
//! through a barrier, and takes barriers away after it has merged for the last time
//! (`OptimizationBarrierExpander` in `xla/service/cpu/cpu_compiler.cc`).
//!
//! Copied is all that is computed where it is used, down to what is stored anyway, and to
//! arrays much smaller than the value. Exact, so done under `--exact`, too.
//!
//! Preconditions: a value that does not stay on chip, static row-major arrays, nothing
//! attached, broadcasts of much smaller arrays only, no more than 32 instructions in a copy,
//! and not within a fusion, where nothing is stored. Where c is the same all along rows that
//! a reduction takes as a whole, the reduction has to spread it over them while it adds up.
//! That is slow where XLA:CPU has no library for reductions (the gradient of layer norm 0.6
//! times as fast), and with it where there is much to spread (a group norm with four such
//! arrays 0.5 times): such values stay shared.
//!
//! Made where the module costs less for it on the target, which is where
//! `fuses_shared` is false. It comes last: equal sums are to be found before.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, EditError, InstId, Module, Op, Opcode, Position, Use};
use tilewright_target::Target;

use crate::analysis::reduce::is_plain;
use crate::cost::shared::{Shared, fused_computations, shared_values};
use crate::cost::takes_minor;
use crate::driver::numbers::Class;
use crate::driver::place_of;
use crate::driver::scales::{Scales, Words, together};
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
        if cx.target.fuses_shared {
            return Ok(0);
        }
        let model = cx.model();
        let mut found = Vec::new();
        let fusions = fused_computations(module);
        for &computation in module.computations() {
            if fusions.contains(&computation) {
                continue;
            }
            let fused = |id: InstId| model.is_fused(module, id);
            let mut shared: BTreeMap<InstId, Vec<Shared>> = BTreeMap::new();
            let is_small = |id| model.stays_on_chip(model.weigh(module.shape(id)));
            for one in shared_values(module, computation, cx.target.library_elements, &fused) {
                if !is_small(one.value) {
                    shared.entry(one.value).or_default().push(one);
                }
            }
            found.extend(
                shared.into_values().filter_map(|by| Copies::of(module, by, cx.target, &fused)),
            );
        }
        if found.is_empty() {
            return Ok(0);
        }
        let together = together(module, found.len());
        let mut scales = Scales::of(module, cx)?;
        let mut changes = 0;
        for some in found.chunks(together) {
            let made = scales.attempt(self, module, cx, |module| {
                let some: Vec<&Copies> = some.iter().filter(|one| one.is_there(module)).collect();
                let Some(first) = some.first() else { return Ok(None) };
                let place = place_of(module, first.value);
                let what = words(module, &some);
                for copies in &some {
                    copies.make(module)?;
                }
                Ok(Some((Words { place, what }, some.len())))
            })?;
            changes += made.unwrap_or(0);
        }
        Ok(changes)
    }
}

fn words(module: &Module, found: &[&Copies]) -> String {
    match found {
        [Copies { value, by, .. }] => {
            let name = |by: &Shared| format!("`{}`", module.name_of(by.reduction));
            let reductions: Vec<String> = by.iter().map(name).collect();
            format!("`{}` anew for {}", module.name_of(*value), reductions.join(", "))
        }
        _ => format!("{} values anew for their reductions", found.len()),
    }
}

/// A value that reductions share, and what a copy of it is made of.
struct Copies {
    value: InstId,
    /// The value and what it is computed of, operands first.
    cone: Vec<Part>,
    /// The reductions that are given a copy.
    by: Vec<Shared>,
}

/// An instruction that is copied.
struct Part {
    id: InstId,
    /// The operand that passes a barrier, so that the copy is not found equal; none
    /// where another operand is a copy.
    barred: Option<InstId>,
}

impl Copies {
    /// What these reductions share, if each of them can have its own.
    fn of(
        module: &Module,
        mut by: Vec<Shared>,
        target: &Target,
        fused: &dyn Fn(InstId) -> bool,
    ) -> Option<Self> {
        let value = by.first()?.value;
        let cone = cone(module, value, target, fused)?;
        let spreads = |one: &Shared| {
            cone.iter().any(|part| is_spread_over_rows(module, part.id, one.reduction))
        };
        if by.iter().any(spreads) {
            return None;
        }
        // What nothing else uses, the last of them keeps.
        let readers: FxHashSet<InstId> = by.iter().flat_map(|one| one.readers.clone()).collect();
        if module.uses(value).all(|one| readers.contains(&one.user)) {
            by.pop();
        }
        (!by.is_empty()).then_some(Self { value, cone, by })
    }

    /// Whether nothing of it went with what others left without use.
    fn is_there(&self, module: &Module) -> bool {
        let parts = self.cone.iter().map(|part| part.id);
        let readers = self.by.iter().flat_map(|shared| shared.readers.iter().copied());
        parts.chain(readers).all(|id| module.instruction(id).parent().is_some())
    }

    /// Writes the copies, and has the reductions read them.
    fn make(&self, module: &mut Module) -> Result<(), EditError> {
        for shared in &self.by {
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

    /// Writes one copy, which differs from all that are there.
    fn copy(&self, module: &mut Module) -> Result<Option<InstId>, EditError> {
        let mut copies: FxHashMap<InstId, InstId> = FxHashMap::default();
        let mut barred: FxHashMap<InstId, InstId> = FxHashMap::default();
        for part in &self.cone {
            if let Some(operand) = part.barred
                && !barred.contains_key(&operand)
            {
                barred.insert(operand, pass_barrier(module, operand)?);
            }
            let own = part.barred.and_then(|operand| Some((operand, *barred.get(&operand)?)));
            let copy = module.copy_instruction(part.id, Position::Before(part.id), |operand| {
                let other = own.filter(|&(barred, _)| barred == operand).map(|(_, by)| by);
                other.or_else(|| copies.get(&operand).copied())
            })?;
            copies.insert(part.id, copy);
        }
        Ok(copies.get(&self.value).copied())
    }
}

/// A value as it comes out of a barrier of its own. Barriers that it passes already pass
/// the new one first, since two of one value would be found equal.
fn pass_barrier(module: &mut Module, value: InstId) -> Result<InstId, EditError> {
    let is_barrier = |one: &Use| module.opcode(one.user) == Opcode::OptimizationBarrier;
    let others: SmallVec<[Use; 1]> = module.uses(value).filter(is_barrier).collect();
    // What is used is followed by its users.
    let position = Position::Before(module.next_instruction(value).unwrap_or(value));
    let (shape, name) = (module.shape(value).clone(), module.fresh_name("opt-barrier"));
    let barrier = module.insert(position, Op::OptimizationBarrier, shape, &[value], name)?;
    module.copy_metadata(value, barrier);
    for other in others {
        module.set_operand(other.user, other.operand, barrier)?;
    }
    Ok(barrier)
}

/// A value and what it is computed of where it is used, operands first.
fn cone(
    module: &Module,
    value: InstId,
    target: &Target,
    fused: &dyn Fn(InstId) -> bool,
) -> Option<Vec<Part>> {
    let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements);
    let most = elements(value)? / i64::from(target.small_part.max(1));
    let most_copied = usize::try_from(target.most_rematerialized).unwrap_or(usize::MAX);
    let is_copied = |id: InstId| {
        let is_copied = !matches!(module.opcode(id), Opcode::Constant | Opcode::Iota);
        is_copied && fused(id) && elements(id).is_some_and(|n| n > most)
    };
    let mut parts: Vec<Part> = Vec::new();
    let mut met: FxHashSet<InstId> = FxHashSet::default();
    let mut next = vec![(value, false)];
    while let Some((id, operands_are_there)) = next.pop() {
        let copied = module.operands(id).iter().copied().filter(|&operand| is_copied(operand));
        if operands_are_there {
            let barred = match copied.count() {
                0 => Some(smallest_operand(module, id)?),
                _ => None,
            };
            parts.push(Part { id, barred });
        } else if met.insert(id) {
            let mut values = [id].into_iter().chain(module.operands(id).iter().copied());
            let are_plain = values.all(|id| module.array_shape(id).is_some_and(is_plain));
            let is_large_spread = module.opcode(id) == Opcode::Broadcast
                && module.operands(id).iter().any(|&of| elements(of).is_none_or(|n| n > most));
            if is_large_spread
                || !are_plain
                || module.extras(id).is_some()
                || met.len() > most_copied
            {
                return None;
            }
            next.push((id, true));
            next.extend(copied.map(|operand| (operand, false)));
        }
    }
    Some(parts)
}

fn smallest_operand(module: &Module, id: InstId) -> Option<InstId> {
    let elements = |id: &InstId| module.array_shape(*id).and_then(ArrayShape::num_elements);
    module.operands(id).iter().copied().min_by_key(elements)
}

/// Whether an instruction spreads numbers over rows that a reduction takes as a whole.
fn is_spread_over_rows(module: &Module, id: InstId, reduction: InstId) -> bool {
    let (Op::Broadcast(spread), Op::Reduce(reduce)) = (module.op(id), module.op(reduction)) else {
        return false;
    };
    let Some(array) = module.array_shape(id) else { return false };
    !spread.dimensions.is_empty()
        && !takes_minor(array, &spread.dimensions)
        && takes_minor(array, &reduce.dimensions)
}

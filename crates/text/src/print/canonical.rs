//! Chooses names and an order that depend only on what a module computes.

use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};
use tilewright_ir::{CompId, InstId, Module, Op, Opcode, SecondaryMap};

/// The names and the order of the canonical form.
///
/// Computations are numbered in the order in which they are needed, callees first, the entry
/// last. Instructions are numbered likewise, each by its opcode: `add.0`, `add.1`. Unneeded
/// ones come after. The order of a schedule is kept.
pub(super) struct Canonical {
    instructions: SecondaryMap<InstId, Option<SmolStr>>,
    computations: FxHashMap<CompId, SmolStr>,
    order: Vec<(CompId, Vec<InstId>)>,
}

impl Canonical {
    pub(super) fn of(module: &Module) -> Self {
        let mut canonical = Self {
            instructions: SecondaryMap::new(),
            computations: FxHashMap::default(),
            order: Vec::with_capacity(module.computations().len()),
        };
        let needed = module.entry().map_or_else(Vec::new, |entry| module.call_order(entry));
        for id in needed.into_iter().chain(module.computations().iter().copied()) {
            if !canonical.computations.contains_key(&id) {
                canonical.add(module, id);
            }
        }
        canonical
    }

    fn add(&mut self, module: &Module, id: CompId) {
        let is_entry = module.entry() == Some(id);
        let number = self.computations.len();
        let name = if is_entry { "entry".into() } else { format_smolstr!("computation.{number}") };
        self.computations.insert(id, name);
        let order = order_of(module, id);
        let mut counts: FxHashMap<Opcode, usize> = FxHashMap::default();
        for &instruction in &order {
            let opcode = module.opcode(instruction);
            let count = counts.entry(opcode).or_default();
            let name = match module.op(instruction) {
                Op::Parameter(parameter) => format_smolstr!("parameter.{}", parameter.number),
                _ => format_smolstr!("{opcode}.{count}"),
            };
            *count += 1;
            self.instructions.set(instruction, Some(name));
        }
        self.order.push((id, order));
    }

    /// Returns the computations in order, each with its instructions in order.
    pub(super) fn take_order(&mut self) -> Vec<(CompId, Vec<InstId>)> {
        std::mem::take(&mut self.order)
    }

    /// Returns the name of an instruction.
    pub(super) fn instruction(&self, id: InstId) -> &str {
        self.instructions[id].as_deref().unwrap_or("")
    }

    /// Returns the name of a computation.
    pub(super) fn computation(&self, id: CompId) -> &str {
        self.computations.get(&id).map_or("", SmolStr::as_str)
    }
}

/// Returns the parameters by number, then the instructions that the root needs in order of
/// need, then the rest. If a schedule or control edges define more of the order, it is kept.
fn order_of(module: &Module, id: CompId) -> Vec<InstId> {
    let rest = || module.instructions(id);
    if module.header.is_scheduled || rest().any(|id| module.extras(id).is_some_and(has_control)) {
        return rest().collect();
    }
    let computation = module.computation(id);
    let mut order: Vec<InstId> = computation.parameters().to_vec();
    let mut seen: rustc_hash::FxHashSet<InstId> = order.iter().copied().collect();
    let needed = computation.root().map_or_else(Vec::new, |root| module.post_order(root));
    order.extend(needed.into_iter().chain(rest()).filter(|&id| seen.insert(id)));
    order
}

fn has_control(extras: &tilewright_ir::Extras) -> bool {
    !extras.control_predecessors.is_empty()
}

//! Costs and times of instructions.

use std::collections::HashMap;

use tilewright::instruction_costs;
use tilewright::ir::{InstId, Module};
use tilewright::{CostModel, Ledger};

use crate::error::ViewError;
use crate::picture::Weight;
use crate::scene;
use crate::words;

/// The costs or times of a module's instructions. The maps are only looked up, so that their order is
/// not observable.
#[derive(Debug)]
pub(super) enum Weights {
    None,
    /// Modelled cycles, and those of the module.
    Cycles(HashMap<InstId, f64>, f64),
    /// Milliseconds by name, and those of the run.
    Times(HashMap<String, f64>, f64),
}

impl Weights {
    pub(super) fn new(
        module: &Module,
        model: CostModel<'_>,
        ledger: &Ledger<'_>,
        asked: &scene::Weights,
    ) -> Result<Self, ViewError> {
        match asked {
            scene::Weights::None => Ok(Self::None),
            scene::Weights::Cycles => Ok(Self::cycles(module, model, ledger)),
            scene::Weights::Profile(json) => Self::times(json),
        }
    }

    fn cycles(module: &Module, model: CostModel<'_>, ledger: &Ledger<'_>) -> Self {
        let mut cycles = HashMap::new();
        for &computation in module.computations() {
            for id in module.instructions(computation) {
                let called = module.called(id).into_iter().map(|c| ledger.total(c).cycles);
                cycles.insert(id, model.of(module, id).cycles + called.sum::<f64>());
            }
        }
        // Those of the entry know what the whole module has in memory.
        let (entry, _) = instruction_costs(module, model.target);
        cycles.extend(entry.into_iter().map(|one| (one.id, one.cost.cycles)));
        Self::Cycles(cycles, ledger.cycles(module))
    }

    /// Reads what `tilewright run --profile --json` writes.
    fn times(json: &str) -> Result<Self, ViewError> {
        let wrong = |what: &str| ViewError::Profile(what.to_owned());
        let value: serde_json::Value =
            serde_json::from_str(json).map_err(|error| ViewError::Profile(error.to_string()))?;
        let profile = value.get("profile").unwrap_or(&value);
        let all = profile.get("instructions").and_then(serde_json::Value::as_array);
        let all = all.ok_or_else(|| wrong("it has no `instructions`"))?;
        let mut times = HashMap::new();
        for one in all {
            let name = one.get("name").and_then(serde_json::Value::as_str);
            let ms = one.get("ms").and_then(serde_json::Value::as_f64);
            let (Some(name), Some(ms)) = (name, ms) else {
                return Err(wrong("an instruction has no `name` or `ms`"));
            };
            *times.entry(name.to_owned()).or_insert(0.0) += ms.max(0.0);
        }
        let total = profile.get("total_ms").and_then(serde_json::Value::as_f64);
        Ok(Self::Times(times, total.unwrap_or(0.0)))
    }

    /// Returns the cost or time of an instruction.
    pub(super) fn of(&self, module: &Module, id: InstId) -> Option<Weight> {
        let (text, part, whole) = match self {
            Self::None => return None,
            Self::Cycles(cycles, total) => {
                let cycles = *cycles.get(&id)?;
                (words::cycles(cycles), cycles, *total)
            }
            Self::Times(times, total) => {
                let ms = *times.get(module.name_of(id))?;
                (words::milliseconds(ms), ms, *total)
            }
        };
        let share = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
        let text = if share >= 0.001 { format!("{text}, {:.1} %", share * 100.0) } else { text };
        (part > 0.0).then_some(Weight { text, share })
    }

    /// Checks whether a profile was given that has no instruction of the module.
    pub(super) fn is_of(&self, module: &Module) -> bool {
        let Self::Times(times, _) = self else { return true };
        let mut ids = module.computations().iter().flat_map(|&c| module.instructions(c));
        times.is_empty() || ids.any(|id| times.contains_key(module.name_of(id)))
    }
}

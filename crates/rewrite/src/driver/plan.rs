//! The passes of a pipeline, found by their names.

use tilewright_ir::Module;

use super::error::OptimizeError;
use super::options::PassSelection;
use super::pass::{Pass, byte_size};
use super::pipelines::pipeline;
use super::registry;
use crate::cost::CostModel;

/// Arrays of less than this part of the largest one that the entry takes or returns do not
/// count, unless they are too large to stay in vector memory.
const LEAST_PART: u64 = 64;

pub(super) type PassList = Vec<&'static dyn Pass>;

/// The passes of a pipeline, found. A list of passes is all cleanup: it runs
/// to its fixpoint, and the result is kept whatever it costs.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) first: PassList,
    pub(super) cleanup: PassList,
    pub(super) cost_gated: Vec<PassList>,
    pub(super) last: PassList,
}

impl Plan {
    pub(super) fn of(passes: &PassSelection) -> Result<Self, OptimizeError> {
        match passes {
            PassSelection::List(names) => {
                Ok(Self { cleanup: find(names.iter().map(String::as_str))?, ..Self::default() })
            }
            PassSelection::Pipeline(name) => {
                let pipeline =
                    pipeline(name).ok_or_else(|| OptimizeError::UnknownPipeline(name.clone()))?;
                Ok(Self {
                    first: find(pipeline.first.iter().copied())?,
                    cleanup: find(pipeline.cleanup.iter().copied())?,
                    cost_gated: pipeline
                        .cost_gated
                        .iter()
                        .map(|group| find(group.iter().copied()))
                        .collect::<Result<_, _>>()?,
                    last: find(pipeline.last.iter().copied())?,
                })
            }
        }
    }
}

impl Plan {
    /// How large an array must be for a rewrite of it to be worthwhile; any is where passes
    /// were named one by one. What the entry takes and returns decides, which no rewrite
    /// changes.
    pub(super) fn least_bytes(&self, module: &Module, model: CostModel<'_>) -> u64 {
        let Some(entry) = module.entry().filter(|_| !self.cost_gated.is_empty()) else { return 0 };
        let taken = module.computation(entry).parameters().iter().copied();
        let kept = taken.chain(module.computation(entry).root());
        let leaves = kept.flat_map(|id| module.shape(id).leaves()).map(byte_size);
        let largest = leaves.max().unwrap_or(0);
        (largest / LEAST_PART).min(model.on_chip_bytes())
    }
}

fn find<'a>(names: impl Iterator<Item = &'a str>) -> Result<PassList, OptimizeError> {
    let find = |name: &str| {
        registry::pass(name).ok_or_else(|| OptimizeError::UnknownPass(name.to_owned()))
    };
    names.map(find).collect()
}

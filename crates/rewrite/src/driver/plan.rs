//! The passes of a pipeline, found by their names.

use tilewright_ir::Module;

use super::error::OptimizeError;
use super::options::{Options, PassSelection};
use super::pass::{Pass, byte_size};
use super::pipelines::pipeline;
use super::registry;
use crate::cost::CostModel;

/// Arrays smaller than this part of the largest array that the entry takes or returns do not count,
/// unless they are too large to stay in vector memory.
const LEAST_PART: u64 = 64;

pub(super) type PassList<'a> = Vec<&'a dyn Pass>;

/// The passes of a pipeline, found by name. A list of passes is all cleanup.
#[derive(Default)]
pub(super) struct PassPlan<'a> {
    /// Whether the result is kept whatever it costs. This is so for a list of passes, and for a
    /// pipeline without built-in cost-gated passes, whichever passes are added.
    pub(super) keeps_result: bool,
    pub(super) first: PassList<'a>,
    pub(super) cleanup: PassList<'a>,
    pub(super) cost_gated: Vec<PassList<'a>>,
    pub(super) last: PassList<'a>,
}

impl<'a> PassPlan<'a> {
    pub(super) fn of(options: &'a Options) -> Result<Self, OptimizeError> {
        let added = || options.added.iter().map(|added| &*added.0);
        for (place, name) in added().map(Pass::name).enumerate() {
            if registry::pass(name).is_some() || added().take(place).any(|one| one.name() == name) {
                return Err(OptimizeError::DuplicatePass(name));
            }
        }
        let find = |name: &str| {
            let named = added().find(|pass| pass.name() == name);
            let found = named.or_else(|| registry::pass(name).map(|pass| pass as &dyn Pass));
            found.ok_or_else(|| OptimizeError::UnknownPass(name.to_owned()))
        };
        let all = |names: &[&str]| names.iter().map(|name| find(name)).collect();
        match &options.passes {
            PassSelection::List(names) => {
                let cleanup = names.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
                Ok(Self { keeps_result: true, cleanup, ..Self::default() })
            }
            PassSelection::Pipeline(name) => {
                let pipeline =
                    pipeline(name).ok_or_else(|| OptimizeError::UnknownPipeline(name.clone()))?;
                let mut cleanup: PassList<'a> = all(pipeline.cleanup)?;
                cleanup.extend(added().filter(|pass| !pass.is_cost_gated()));
                let gated = added().filter(|pass| pass.is_cost_gated()).map(|pass| Ok(vec![pass]));
                let built_in = pipeline.cost_gated.iter().map(|group| all(group));
                Ok(Self {
                    keeps_result: pipeline.cost_gated.is_empty(),
                    first: all(pipeline.first)?,
                    cleanup,
                    cost_gated: gated.chain(built_in).collect::<Result<_, _>>()?,
                    last: all(pipeline.last)?,
                })
            }
        }
    }

    /// Returns the size in bytes that an array must have for a rewrite of it to be worthwhile; any
    /// size will do where passes were named one by one. The size depends on the parameters and the
    /// result of the entry, which no rewrite changes.
    pub(super) fn least_bytes(&self, module: &Module, model: CostModel<'_>) -> u64 {
        let Some(entry) = module.entry().filter(|_| !self.cost_gated.is_empty()) else { return 0 };
        let taken = module.computation(entry).parameters().iter().copied();
        let kept = taken.chain(module.computation(entry).root());
        let leaves = kept.flat_map(|id| module.shape(id).leaves()).map(byte_size);
        let largest = leaves.max().unwrap_or(0);
        (largest / LEAST_PART).min(model.on_chip_bytes())
    }
}

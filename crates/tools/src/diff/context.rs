//! The uses of a value as a class: what becomes of it, up to the root.

use rustc_hash::FxHashMap;
use tilewright::ir::{CompId, InstId};

use super::interner::{Class, Interner, Parts, number};
use super::side::Side;

/// For each instruction of a computation, the class of its uses, and that of its uses together with
/// its core.
pub(super) struct Contexts {
    pub(super) uses: FxHashMap<InstId, Class>,
    pub(super) with_core: FxHashMap<InstId, Class>,
}

impl Contexts {
    /// Goes through a computation from the users to their operands.
    pub(super) fn new(side: &Side<'_>, id: CompId, parts: &mut Interner<Parts>) -> Self {
        let mut contexts = Self { uses: FxHashMap::default(), with_core: FxHashMap::default() };
        let module = side.module;
        for id in module.instructions(id).rev() {
            let mut uses: Vec<(Class, u32)> = module
                .uses(id)
                .map(|of| {
                    let user = contexts.with_core.get(&of.user).copied().unwrap_or(u32::MAX);
                    (user, number(of.operand))
                })
                .collect();
            uses.sort_unstable();
            let mut key = Parts::from_slice(&[u32::from(module.is_root(id))]);
            key.extend(uses.into_iter().flat_map(|(user, operand)| [user, operand]));
            let uses = parts.class(key);
            contexts.uses.insert(id, uses);
            let core = side.core.get(tilewright::ir::Entity::index(id)).copied().unwrap_or(0);
            contexts.with_core.insert(id, parts.class(Parts::from_slice(&[core, uses])));
        }
        contexts
    }
}

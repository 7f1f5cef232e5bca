//! Leaves out what does not change which values a module computes: metadata, layouts and the like.

use tilewright::ir::{Extras, Header, InstId, Module, Op, Shape};

use super::draft::Draft;
use super::search::{Ended, Search};
use super::walk::all_instructions;

/// Kinds of annotations, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u16);

impl Kinds {
    pub(super) const METADATA: Self = Self(1);
    const FRONTEND: Self = Self(1 << 1);
    const SHARDING: Self = Self(1 << 2);
    const BACKEND: Self = Self(1 << 3);
    pub(super) const LAYOUTS: Self = Self(1 << 4);
    const PRECISION: Self = Self(1 << 5);
    const ORDER: Self = Self(1 << 6);
    const ALIASES: Self = Self(1 << 7);
    const DEVICES: Self = Self(1 << 8);
    const REST: Self = Self(1 << 9);
    const EACH: [Self; 10] = [
        Self::METADATA,
        Self::FRONTEND,
        Self::SHARDING,
        Self::BACKEND,
        Self::LAYOUTS,
        Self::PRECISION,
        Self::ORDER,
        Self::ALIASES,
        Self::DEVICES,
        Self::REST,
    ];
    const ALL: Self = Self(u16::MAX);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Leaves out every annotation of every kind, if the module is kept without them.
pub(super) fn all_at_once(search: &mut Search<'_>) -> Result<bool, Ended> {
    let without = |module: &Module, _: usize| stripped(module, Kinds::ALL).write(module);
    Ok(search.first("annotations", 1, &without)?.is_some())
}

/// Leaves out annotations: all of a kind, and if that is too much, those of sets of instructions.
pub(super) fn by_kind(search: &mut Search<'_>) -> Result<bool, Ended> {
    let mut any = all_at_once(search)?;
    for kind in Kinds::EACH {
        let all = |module: &Module, _: usize| stripped(module, kind).write(module);
        if search.first("annotations", 1, &all)?.is_some() {
            any = true;
            continue;
        }
        let header = |module: &Module, _: usize| {
            Draft { stripped_header: kind, ..Draft::default() }.write(module)
        };
        any |= search.first("annotations", 1, &header)?.is_some();
        any |= search.sweep(
            "annotations",
            &|module| all_instructions(module).filter(|&id| has(module, id, kind)).collect(),
            &|module, chunk: &[InstId]| {
                let stripped = chunk.iter().map(|&id| (id, kind)).collect();
                Draft { stripped, ..Draft::default() }.write(module)
            },
        )?;
    }
    Ok(any)
}

fn stripped(module: &Module, kinds: Kinds) -> Draft {
    let stripped = all_instructions(module).map(|id| (id, kinds)).collect();
    Draft { stripped, stripped_header: kinds, ..Draft::default() }
}

/// Checks whether an instruction has annotations of a kind.
fn has(module: &Module, id: InstId, kind: Kinds) -> bool {
    if kind == Kinds::METADATA {
        return module.metadata(id).is_some();
    }
    if kind == Kinds::LAYOUTS {
        let mut shape = module.shape(id).clone();
        strip_shape(&mut shape, kind);
        return shape != *module.shape(id);
    }
    if kind == Kinds::PRECISION {
        let mut op = module.op(id).clone();
        strip_op(&mut op, kind);
        return op != *module.op(id);
    }
    module.extras(id).is_some_and(|extras| strip_extras(extras, kind) != *extras)
}

pub(super) fn strip_shape(shape: &mut Shape, kinds: Kinds) {
    if kinds.has(Kinds::LAYOUTS) {
        *shape = shape.without_layout();
    }
}

pub(super) fn strip_op(op: &mut Op, kinds: Kinds) {
    if !kinds.has(Kinds::PRECISION) {
        return;
    }
    match op {
        Op::Dot(attrs) => {
            attrs.operand_precision.clear();
            attrs.algorithm = None;
        }
        Op::Convolution(attrs) => attrs.operand_precision.clear(),
        Op::RaggedDot(attrs) => attrs.operand_precision.clear(),
        Op::CustomCall(attrs) => attrs.operand_precision.clear(),
        Op::Exp(attrs) | Op::Log(attrs) | Op::Tanh(attrs) | Op::Rsqrt(attrs) | Op::Sqrt(attrs) => {
            **attrs = Default::default();
        }
        _ => {}
    }
}

/// Returns extras without annotations of these kinds. Text has no place for their binary rest.
pub(super) fn strip_extras(extras: &Extras, kinds: Kinds) -> Extras {
    let mut extras = extras.clone();
    extras.residue = Box::default();
    if kinds.has(Kinds::FRONTEND) {
        extras.frontend_attributes.clear();
    }
    if kinds.has(Kinds::SHARDING) {
        extras.sharding = None;
        extras.parameter_replication.clear();
    }
    if kinds.has(Kinds::BACKEND) {
        extras.backend_config = None;
    }
    if kinds.has(Kinds::ORDER) {
        extras.control_predecessors.clear();
    }
    if kinds.has(Kinds::REST) {
        extras.statistics = None;
        extras.origin = None;
        extras.other.clear();
    }
    extras
}

pub(super) fn strip_header(header: &mut Header, kinds: Kinds) {
    if kinds.has(Kinds::METADATA) {
        header.stack_tables = None;
    }
    if kinds.has(Kinds::FRONTEND) {
        header.frontend_attributes.clear();
    }
    if kinds.has(Kinds::SHARDING) {
        header.allow_sharding_propagation_to_parameters.clear();
        header.allow_sharding_propagation_to_output.clear();
    }
    if kinds.has(Kinds::LAYOUTS) {
        header.entry_layout = None;
    }
    if kinds.has(Kinds::ORDER) {
        header.is_scheduled = false;
    }
    if kinds.has(Kinds::ALIASES) {
        header.input_output_alias.clear();
        header.buffer_donors.clear();
        header.alias_passthrough_params = false;
    }
    if kinds.has(Kinds::DEVICES) {
        header.replica_count = None;
        header.num_partitions = None;
    }
    if kinds.has(Kinds::REST) {
        header.origin_recovery.clear();
        header.other.clear();
    }
}

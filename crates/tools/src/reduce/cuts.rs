//! Puts simpler values in place of instructions: new parameters, operands, constants.

use std::collections::HashMap;

use tilewright::RunOptions;
use tilewright::ir::{Data, InstId, Literal, Module, Op, Opcode, Shape};
use tilewright::{Limits, Observer, Seen};

use super::draft::{Draft, Stand};
use super::search::{Ended, Search};
use super::walk::{all_instructions, entry_instructions, is_leaf};

/// The most instructions of a module in which each is tried as ones and as its value.
const FEW: usize = 64;
/// The most elements of a value that becomes a constant.
const MAX_ELEMENTS: i64 = 16;
/// The limits of the evaluation whose values become constants.
const LIMITS: Limits = Limits { max_steps: 10_000_000, max_bytes: 1 << 28 };

fn with_stands(
    module: &Module,
    stands: HashMap<InstId, Stand>,
    drops_unused: bool,
) -> Option<Module> {
    Draft { stands, drops_unused, ..Draft::default() }.write(module)
}

/// Puts new parameters in place of the values of the entry.
pub(super) fn to_parameters(search: &mut Search<'_>) -> Result<bool, Ended> {
    if !search.drops_unused {
        // Then the parameters must stay as they are.
        return Ok(false);
    }
    search.sweep(
        "parameters",
        &|module| {
            let is_cut = |&id: &InstId| !is_leaf(module, id) && !is_opaque(module.shape(id));
            entry_instructions(module).filter(is_cut).collect()
        },
        &|module, chunk: &[InstId]| {
            let stands = chunk.iter().map(|&id| (id, Stand::Parameter)).collect();
            with_stands(module, stands, true)
        },
    )
}

fn is_opaque(shape: &Shape) -> bool {
    shape.leaves().iter().any(|leaf| matches!(leaf, Shape::Opaque | Shape::Buffer(_)))
}

/// Puts operands of the same shape in place of instructions, and in computations that are called
/// also parameters.
pub(super) fn to_operands(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    search.sweep(
        "operands",
        &|module| {
            let fits = |id: InstId, operand: InstId| {
                operand != id && module.shape(id).compatible(module.shape(operand))
            };
            let of = |id: InstId| {
                let parent = module.instruction(id).parent();
                let callee = parent.filter(|&parent| module.entry() != Some(parent));
                let given = callee.map(|callee| module.computation(callee).parameters());
                let given = given.unwrap_or_default().iter().copied();
                let given = given.filter(move |&parameter| fits(id, parameter)).take(1);
                let operands = module.operands(id).iter().copied();
                let operands = operands.filter(move |&operand| fits(id, operand));
                let elements = elements_given(module, id).iter().copied();
                let elements = elements.filter(move |&element| fits(id, element));
                let values = elements.chain(operands).chain(given);
                values.map(move |value| (id, value))
            };
            all_instructions(module).filter(|&id| !is_leaf(module, id)).flat_map(of).collect()
        },
        &|module, chunk: &[(InstId, InstId)]| {
            let mut stands = HashMap::new();
            for &(id, operand) in chunk {
                stands.entry(id).or_insert(Stand::Value(operand));
            }
            with_stands(module, stands, drops_unused)
        },
    )
}

/// Returns the values that a tuple was made of, of which an instruction takes one.
fn elements_given(module: &Module, id: InstId) -> &[InstId] {
    let is_taken = matches!(module.op(id), Op::GetTupleElement(_));
    match module.operands(id) {
        &[tuple] if is_taken && matches!(module.op(tuple), Op::Tuple) => module.operands(tuple),
        _ => &[],
    }
}

/// Puts zeros, ones or the values that the interpreter computes in place of instructions.
pub(super) fn to_constants(search: &mut Search<'_>) -> Result<bool, Ended> {
    let mut any = filled(search, &Stand::Zero)?;
    if search.size.instructions <= FEW {
        any |= filled(search, &Stand::One)?;
        any |= evaluated(search)?;
    }
    Ok(any)
}

fn filled(search: &mut Search<'_>, stand: &Stand) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    search.sweep(
        "constants",
        &|module| {
            let is_cut = |&id: &InstId| !is_leaf(module, id) && !is_opaque(module.shape(id));
            all_instructions(module).filter(is_cut).collect()
        },
        &|module, chunk: &[InstId]| {
            let stands = chunk.iter().map(|&id| (id, stand.clone())).collect();
            with_stands(module, stands, drops_unused)
        },
    )
}

/// Puts values of small arrays in place of the instructions that compute them, on random inputs.
fn evaluated(search: &mut Search<'_>) -> Result<bool, Ended> {
    let drops_unused = search.drops_unused;
    let mut any = false;
    loop {
        let values = values(search);
        let make = |module: &Module, number: usize| {
            let (id, literal) = values.get(number)?;
            let stands = [(*id, Stand::Constant(literal.clone()))].into_iter().collect();
            with_stands(module, stands, drops_unused)
        };
        if search.first("values", values.len(), &make)?.is_none() {
            return Ok(any);
        }
        any = true;
    }
}

/// Sees the values of small arrays of the entry.
struct Recorder<'a> {
    wanted: &'a [InstId],
    values: std::sync::Mutex<Vec<(InstId, Literal)>>,
}

impl Observer for Recorder<'_> {
    fn evaluated(&self, seen: &Seen<'_>) {
        if self.wanted.contains(&seen.id())
            && let Some(literal) = seen.literal().filter(is_finite)
            && let Ok(mut values) = self.values.lock()
        {
            values.push((seen.id(), literal));
        }
    }
}

/// Checks that a value has no infinity and no NaN: what makes one must stay to be seen.
fn is_finite(literal: &Literal) -> bool {
    let Some(array) = literal.as_array() else { return false };
    match array.data() {
        Data::F16(values) => values.iter().all(|value| value.is_finite()),
        Data::BF16(values) => values.iter().all(|value| value.is_finite()),
        Data::F32(values) => values.iter().all(|value| value.is_finite()),
        Data::F64(values) => values.iter().all(|value| value.is_finite()),
        Data::C64(values) => values.iter().all(|value| value.is_finite()),
        Data::C128(values) => values.iter().all(|value| value.is_finite()),
        _ => true,
    }
}

fn values(search: &Search<'_>) -> Vec<(InstId, Literal)> {
    let module = &search.best;
    let is_wanted = |&id: &InstId| {
        let array = module.array_shape(id);
        let is_small = array.and_then(tilewright::ir::ArrayShape::num_elements);
        !is_leaf(module, id)
            && array.is_some_and(tilewright::ir::ArrayShape::is_static)
            && is_small.is_some_and(|count| count <= MAX_ELEMENTS)
            && module.opcode(id) != Opcode::AfterAll
    };
    let wanted: Vec<InstId> = entry_instructions(module).filter(is_wanted).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let recorder = Recorder { wanted: &wanted, values: std::sync::Mutex::default() };
    let options = RunOptions::default().with_limits(LIMITS).with_observer(&recorder);
    // A module that cannot be evaluated has the values that were computed before the error.
    let _ = tilewright::random_inputs(module, 0)
        .and_then(|inputs| tilewright::run(module, &inputs, &options));
    recorder.values.into_inner().unwrap_or_default()
}

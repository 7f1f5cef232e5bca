//! Converts computations of scalars to functions of kernels.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Op};

use crate::kernel::{Function, FunctionStep, FunctionValue};

/// Largest number of instructions of a computation, calls included, that is converted.
const MOST_INSTRUCTIONS: usize = 256;

/// Converts a computation of elementwise ops, constants and calls whose result is a scalar or a
/// tuple of scalars. `None` for all other computations.
pub(super) fn function(module: &Module, computation: CompId, name: &str) -> Option<Function> {
    let mut function = Function {
        name: name.into(),
        values: Vec::new(),
        parameters: 0,
        steps: Vec::new(),
        results: Vec::new(),
    };
    let parameters = module.computation(computation).parameters();
    for &parameter in parameters {
        push(module, parameter, &mut function)?;
    }
    function.parameters = parameters.len();
    let arguments: Vec<usize> = (0..parameters.len()).collect();
    let mut left = MOST_INSTRUCTIONS;
    function.results = inline(module, computation, &arguments, &mut function, &mut left)?;
    Some(function)
}

/// Adds a value of the type of a scalar instruction.
fn push(module: &Module, id: InstId, function: &mut Function) -> Option<usize> {
    let shape = module.array_shape(id).filter(|shape| shape.rank() == 0)?;
    let place = function.values.len();
    let name = format!("v{place}").into();
    function.values.push(FunctionValue { name, element_type: shape.element_type });
    Some(place)
}

/// Adds the steps of a computation and returns the numbers of its results. `left` is how many
/// more instructions may be visited; every call takes one, so it bounds the depth of calls, too.
fn inline(
    module: &Module,
    computation: CompId,
    arguments: &[usize],
    function: &mut Function,
    left: &mut usize,
) -> Option<Vec<usize>> {
    let mut known: FxHashMap<InstId, usize> = FxHashMap::default();
    let parameters = module.computation(computation).parameters();
    known.extend(parameters.iter().copied().zip(arguments.iter().copied()));
    let root = module.computation(computation).root()?;
    for id in module.instructions(computation) {
        if known.contains_key(&id) || (id == root && matches!(module.op(id), Op::Tuple)) {
            continue;
        }
        *left = left.checked_sub(1)?;
        let operands: Option<SmallVec<[usize; 3]>> =
            module.operands(id).iter().map(|operand| known.get(operand).copied()).collect();
        let operands = operands?;
        let place = match module.op(id) {
            Op::Constant(literal) => {
                let place = push(module, id, function)?;
                function.steps.push(FunctionStep::Constant((**literal).clone()));
                place
            }
            Op::Copy => *operands.first()?,
            Op::Call(attrs) => match inline(module, attrs.to_apply, &operands, function, left)?[..]
            {
                [only] => only,
                _ => return None,
            },
            op if op.opcode().is_elementwise() => {
                let place = push(module, id, function)?;
                function.steps.push(FunctionStep::Apply(op.clone(), operands));
                place
            }
            _ => return None,
        };
        known.insert(id, place);
    }
    let results: &[InstId] = match module.op(root) {
        Op::Tuple => module.operands(root),
        _ => &[root],
    };
    results.iter().map(|result| known.get(result).copied()).collect()
}

//! Call inlining: a `call` becomes the instructions of its callee, so that patterns across the call
//! are found. JAX writes every nested `jit` (`jnp.var` among them) as a call.

use rustc_hash::FxHashMap;
use tilewright_ir::metadata::OpMetadata;
use tilewright_ir::{CompId, EditError, InstId, Module, Op, Position};

use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct Inline;

impl Pass for Inline {
    fn name(&self) -> &'static str {
        "inline"
    }

    fn summary(&self) -> &'static str {
        "replace calls by what they call"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let mut count = module.instruction_count();
        let mut inlined = 0;
        // Callees stand before callers, so a copied body contains no inlinable calls any more.
        for computation in module.computations().to_vec() {
            let calls: Vec<(InstId, CompId)> = module
                .instructions(computation)
                .filter_map(|id| callee_of(module, id).map(|callee| (id, callee)))
                .collect();
            for (call, callee) in calls {
                let grown = count.saturating_add(module.computation(callee).len());
                // Calls that double at every level could exhaust memory.
                if grown > cx.most_instructions {
                    continue;
                }
                inline(module, call, callee)?;
                count = grown;
                inlined += 1;
            }
        }
        Ok(inlined)
    }
}

/// Returns the callee of a call that can be inlined: nothing is attached, it runs on the main
/// thread, it is no composite op and no manual computation.
fn callee_of(module: &Module, id: InstId) -> Option<CompId> {
    let Op::Call(attrs) = module.op(id) else { return None };
    let plain = !attrs.is_composite
        && module.extras(id).is_none()
        && module.computation(attrs.to_apply).execution_thread().is_none()
        && !module.operands(id).iter().any(|&operand| is_shard(module, operand));
    plain.then_some(attrs.to_apply)
}

/// Checks whether a value is the part of an array that one device has, which a program handles by
/// itself. The callee's instructions do not say that they are manual; XLA's propagation of GSPMD
/// shardings fails on some of them, unless it inlines the call itself.
fn is_shard(module: &Module, id: InstId) -> bool {
    let Op::CustomCall(attrs) = module.op(id) else { return false };
    attrs.custom_call_target == "SPMDFullToShardShape"
}

fn inline(module: &mut Module, call: InstId, callee: CompId) -> Result<(), EditError> {
    let mut copies: FxHashMap<InstId, InstId> = FxHashMap::default();
    let parameters = module.computation(callee).parameters().to_vec();
    for (parameter, &argument) in parameters.iter().zip(module.operands(call)) {
        copies.insert(*parameter, argument);
    }
    let body: Vec<InstId> = module.instructions(callee).collect();
    for id in body {
        if copies.contains_key(&id) {
            continue;
        }
        let copy =
            module.copy_instruction(id, Position::Before(call), |old| copies.get(&old).copied())?;
        give_scope(module, call, copy);
        copies.insert(id, copy);
    }
    let root = module.computation(callee).root().and_then(|root| copies.get(&root).copied());
    if let Some(root) = root {
        module.replace_uses(call, root)?;
        if module.is_removable(call) {
            module.remove(call)?;
        }
    }
    Ok(())
}

/// Puts the call's framework name in front of that of an inlined instruction, as XLA does:
/// `jit(f)/layer1/jit(norm)` and `add` become `jit(f)/layer1/jit(norm)/add`. An instruction without
/// metadata gets the call's.
fn give_scope(module: &mut Module, call: InstId, copy: InstId) {
    let Some(scope) = module.metadata(call).map(|metadata| metadata.op_name.clone()) else {
        return;
    };
    let Some(own) = module.metadata(copy) else { return module.copy_metadata(call, copy) };
    // Older versions of JAX write names in full.
    if scope.is_empty() || own.op_name.starts_with(scope.as_str()) {
        return;
    }
    let op_name = match own.op_name.as_str() {
        "" => scope,
        name => format!("{scope}/{name}").into(),
    };
    let metadata = OpMetadata { op_name, ..own.clone() };
    module.set_metadata(copy, metadata);
}

//! Recognises modules that XLA has optimised.

use tilewright_ir::{Module, Opcode};

use crate::report::counted;

/// Says that a module is one that XLA has optimised, and how to get the one before: `None` for a
/// module that is neither scheduled nor has fusions.
///
/// [`optimize`](crate::optimize()) rewrites such a module like any other, but finds little in it:
/// what it looks for is hidden in fusions, and XLA optimises its result no more.
pub fn after_optimization(module: &Module) -> Option<String> {
    let instructions = module.computations().iter().flat_map(|&id| module.instructions(id));
    let fusions = instructions.filter(|&id| module.opcode(id) == Opcode::Fusion).count();
    let mut signs = Vec::new();
    if module.header.is_scheduled {
        signs.push("is scheduled".to_owned());
    }
    if fusions > 0 {
        signs.push(format!("has {}", counted(fusions, "fusion")));
    }
    if signs.is_empty() {
        return None;
    }
    Some(format!(
        "the module {}: XLA has optimised it. `opt` wants the module before optimisation:\n  \
         JAX: jax.jit(f).lower(*args).as_text(\"hlo\", debug_info=True)\n  \
         PyTorch/XLA: torch_xla._XLAC._get_xla_tensors_hlo(tensors)\n  \
         any: run with XLA_FLAGS=--xla_dump_to=DIR, then name DIR, or its file \
         *.before_optimizations.txt",
        signs.join(" and ")
    ))
}

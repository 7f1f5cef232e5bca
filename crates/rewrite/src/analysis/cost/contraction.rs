//! What is computed beside contractions, while the matrix unit works.
//!
//! XLA's compiler for such machines makes one kernel of a product or convolution, what is
//! computed elementwise for it alone and what is computed elementwise of its result. The
//! vector units have time for that: it costs nothing besides (`fuses_contractions`).

use tilewright_ir::{CompId, InstId, Module, Opcode, SecondaryMap};

/// Whether an instruction is a product of matrices or a convolution.
pub(super) fn is_contraction(module: &Module, id: InstId) -> bool {
    matches!(module.opcode(id), Opcode::Dot | Opcode::Convolution)
}

/// What is computed where it is used (`fused`) and is part of a contraction's kernel: all
/// that nothing but contractions read, and what reads a contraction that nothing else reads.
pub(super) fn beside_contractions(
    module: &Module,
    computation: CompId,
    fused: &SecondaryMap<InstId, bool>,
) -> Vec<InstId> {
    let mut inputs: SecondaryMap<InstId, bool> = SecondaryMap::new();
    for id in module.instructions(computation).rev() {
        let goes_in = |user: InstId| is_contraction(module, user) || inputs[user];
        let is_used = module.instruction(id).use_count() > 0 && !module.is_root(id);
        let is_input = fused[id] && is_used && module.uses(id).all(|one| goes_in(one.user));
        inputs.set(id, is_input);
    }
    let mut outputs: SecondaryMap<InstId, bool> = SecondaryMap::new();
    for id in module.instructions(computation) {
        let comes_out = |&operand: &InstId| {
            let is_made = is_contraction(module, operand) || outputs[operand];
            is_made && module.uses(operand).all(|one| one.user == id)
        };
        outputs.set(id, fused[id] && module.operands(id).iter().any(comes_out));
    }
    module.instructions(computation).filter(|&id| inputs[id] || outputs[id]).collect()
}

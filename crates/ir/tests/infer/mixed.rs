//! Floats of different precision: what XLA's verifier lets through where mixed
//! precision is allowed.

use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::{BroadcastAttrs, ConcatenateAttrs, PadAttrs, ReshapeAttrs};
use tilewright_ir::{CompId, Op, infer_mixed};

use super::{Case, Rules, of};
use crate::common::dims;

impl Case<'_> {
    /// The rule refuses one precision and takes several.
    #[track_caller]
    fn mixes(self, expected: &str) {
        let operands: Vec<_> = self.operands.iter().collect();
        match infer_mixed(self.module, &self.op, &operands, self.declared.as_ref()) {
            Ok(inferred) => {
                assert_eq!(inferred.shape.to_string(), expected);
                assert!(inferred.mixes_precision, "{expected} is of one precision");
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[track_caller]
    fn never_mixes(self) {
        let operands: Vec<_> = self.operands.iter().collect();
        let inferred = infer_mixed(self.module, &self.op, &operands, self.declared.as_ref());
        assert!(inferred.is_err(), "{inferred:?}");
    }
}

#[test]
fn what_is_computed_has_any_precision() {
    of(Op::Add, &["f32[4]", "bf16[4]"]).mixes("f32[4]");
    of(Op::Add, &["f16[4]", "bf16[4]"]).declared("f16[4]").mixes("bf16[4]");
    of(Op::Add, &["f32[4]", "f32[4]"]).declared("bf16[4]").mixes("f32[4]");
    of(Op::Sinh, &["f32[4]"]).declared("f16[4]").mixes("f32[4]");
    of(Op::Copy, &["f32[4]"]).declared("f16[4]").mixes("f32[4]");
    of(Op::Select, &["pred[4]", "f32[4]", "bf16[4]"]).mixes("f32[4]");
    of(Op::Clamp, &["f32[]", "bf16[4]", "bf16[]"]).mixes("bf16[4]");
    let joined = || Op::Concatenate(Box::new(ConcatenateAttrs { dimensions: dims(&[0]) }));
    of(joined(), &["bf16[4]", "bf16[1]", "f32[2]"]).mixes("f32[7]");
    let pad = Op::Pad(Box::new(PadAttrs { padding: Default::default() }));
    of(pad, &["bf16[]", "f32[]"]).mixes("f32[]");
}

#[test]
fn reducers_have_a_precision_of_their_own() {
    let mut rules = Rules::default();
    let reduce =
        |to_apply: CompId| Op::Reduce(Box::new(ReduceAttrs { dimensions: dims(&[0]), to_apply }));
    let wide = rules.callee(&["f32[]", "f32[]"], "f32[]");
    rules.of(reduce(wide), &["bf16[4]", "bf16[]"]).mixes("f32[]");
    rules.of(reduce(wide), &["bf16[4]", "bf16[]"]).declared("bf16[]").mixes("f32[]");
    // A reducer is called again with its own results.
    let narrowing = rules.callee(&["f32[]", "f32[]"], "bf16[]");
    rules.of(reduce(narrowing), &["f32[4]", "f32[]"]).never_mixes();
}

#[test]
fn an_update_takes_the_precision_of_what_is_updated() {
    let update = |operands: &[&str]| of(Op::DynamicUpdateSlice, operands);
    update(&["f32[4]", "bf16[2]", "s32[]"]).mixes("f32[4]");
    update(&["bf16[4]", "f32[2]", "s32[]"]).declared("bf16[4]").mixes("bf16[4]");
    update(&["bf16[4]", "f32[2]", "s32[]"]).declared("f32[4]").never_mixes();
}

#[test]
fn other_differences_stay_errors() {
    of(Op::Add, &["f32[4]", "s32[4]"]).never_mixes();
    of(Op::Add, &["f32[4]", "c64[4]"]).never_mixes();
    of(Op::Add, &["f32[4]", "bf16[5]"]).never_mixes();
    of(Op::Add, &["f32[4]", "bf16[4]"]).declared("s32[4]").never_mixes();
    of(Op::Add, &["f32[4]", "bf16[4]", "f32[4]"]).never_mixes();
    of(Op::And, &["s8[4]", "s32[4]"]).never_mixes();
}

#[test]
fn what_is_handed_on_keeps_its_precision() {
    let broadcast = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: dims(&[]) }));
    of(broadcast, &["f32[]"]).declared("bf16[4]").never_mixes();
    let reshape = Op::Reshape(Box::new(ReshapeAttrs { inferred_dimension: None }));
    of(reshape, &["f32[4]"]).declared("bf16[4]").never_mixes();
    of(Op::Tuple, &["f32[4]"]).declared("(bf16[4])").never_mixes();
    of(Op::OptimizationBarrier, &["f32[4]"]).declared("bf16[4]").never_mixes();
}

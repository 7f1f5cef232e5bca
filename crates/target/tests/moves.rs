//! Tests the costs of reshapes and transposes against values worked out by hand.

use crate::model::{f32, laid_out};
use tilewright_ir::element::ElementType;
use tilewright_ir::shape::{ArrayShape, UNBOUNDED};
use tilewright_target::MoveKind::{Free, KeepsTiles, Realigns};
use tilewright_target::{MoveKind, ReshapeCost, Target};

fn tpu() -> Target {
    Target::builtin("tpu-like").unwrap()
}

fn reshape(from: &[i64], to: &[i64]) -> MoveKind {
    let (there, back) =
        (tpu().reshape_cost(&f32(from), &f32(to)), tpu().reshape_cost(&f32(to), &f32(from)));
    assert_eq!(there, back, "{from:?} and {to:?}");
    there.kind
}

#[test]
fn group_norm_realigns_the_wider_side() {
    let (x, grouped) = (f32(&[4, 64, 64, 320]), f32(&[4, 64, 64, 32, 10]));
    let cost = tpu().reshape_cost(&x, &grouped);
    assert_eq!(cost, ReshapeCost { realigned_vectors: 65_536, kind: Realigns });
    // Reduced first, it is one row of 320 against 32x10: 4*3 and 4*4 vectors.
    let cost = tpu().reshape_cost(&f32(&[4, 1, 320]), &f32(&[4, 32, 10]));
    assert_eq!(cost, ReshapeCost { realigned_vectors: 16, kind: Realigns });
    // 8 rows, each moved by itself.
    assert_eq!(tpu().realign_cycles(), 8.0);
}

#[test]
fn s0_and_s4_examples() {
    // "[9] -> [3,3] re-aligns three vectors" is about a machine with one-dimensional vectors.
    // Ours takes one vector for each side.
    assert_eq!(reshape(&[9], &[3, 3]), Realigns);
    let mut plain = tpu();
    (plain.lanes, plain.sublanes) = (4, 1);
    let cost = plain.reshape_cost(&f32(&[9]), &f32(&[3, 3]));
    assert_eq!(cost, ReshapeCost { realigned_vectors: 3, kind: Realigns });
    let linear = Target::builtin("linear").unwrap();
    assert_eq!(linear.reshape_cost(&f32(&[9]), &f32(&[3, 3])).kind, Free);
}

#[test]
fn regrouping_major_dims_keeps_tiles() {
    assert_eq!(reshape(&[4, 6, 10, 20], &[24, 10, 20]), KeepsTiles);
    assert_eq!(reshape(&[4, 6, 10, 20], &[3, 8, 10, 20]), KeepsTiles);
    assert_eq!(reshape(&[2, 3, 9, 200], &[6, 9, 200]), KeepsTiles);
}

#[test]
fn splitting_rows_at_tiles_keeps_them() {
    assert_eq!(reshape(&[64, 320], &[8, 8, 320]), KeepsTiles);
    assert_eq!(reshape(&[64, 320], &[4, 16, 320]), KeepsTiles);
    assert_eq!(reshape(&[4, 64, 64, 320], &[16_384, 320]), KeepsTiles);
    // 4 rows are half a vector.
    assert_eq!(reshape(&[64, 320], &[16, 4, 320]), Realigns);
    // 12 rows end inside of a vector.
    assert_eq!(reshape(&[24, 320], &[2, 12, 320]), Realigns);
    // For 16-bit elements a tile has 16 rows.
    let bf16 = |dims: &[i64]| ArrayShape::new(ElementType::BF16, dims.iter().copied());
    let kind = |a: &[i64], b: &[i64]| tpu().reshape_cost(&bf16(a), &bf16(b)).kind;
    assert_eq!(kind(&[64, 320], &[8, 8, 320]), Realigns);
    assert_eq!(kind(&[64, 320], &[4, 16, 320]), KeepsTiles);
}

#[test]
fn changing_the_minor_dim_realigns() {
    assert_eq!(reshape(&[8, 1024], &[8, 8, 128]), Realigns);
    assert_eq!(reshape(&[64, 64], &[4096]), Realigns);
    assert_eq!(reshape(&[8, 16], &[16, 8]), Realigns);
    // Unless rows follow each other: one tile across, full lanes.
    assert_eq!(reshape(&[8, 128], &[1024]), KeepsTiles);
    assert_eq!(reshape(&[16, 128], &[2048]), KeepsTiles);
    assert_eq!(reshape(&[3, 16, 128], &[6144]), KeepsTiles);
    assert_eq!(reshape(&[16, 256], &[4096]), Realigns);
    // 128 elements fill a row of a chunk; 129 continue in the next one.
    assert_eq!(reshape(&[1, 128], &[128]), Free);
    assert_eq!(reshape(&[1, 129], &[129]), Realigns);
}

#[test]
fn dims_of_1_are_free_where_they_move_nothing() {
    assert_eq!(reshape(&[], &[1]), Free);
    assert_eq!(reshape(&[], &[1, 1, 1]), Free);
    assert_eq!(reshape(&[4, 128], &[1, 4, 128]), Free);
    assert_eq!(reshape(&[6, 4, 100], &[6, 1, 4, 100]), Free);
    assert_eq!(reshape(&[6, 4, 100], &[1, 6, 1, 1, 4, 100]), Free);
    // jax-ml/jax#24404: each row becomes a vector of its own.
    assert_eq!(reshape(&[4, 128], &[4, 1, 128]), Realigns);
    assert_eq!(reshape(&[4, 128], &[4, 128, 1]), Realigns);
    assert_eq!(reshape(&[8], &[8, 1]), Realigns);
    // Along a column each element starts a row, however columns are split.
    assert_eq!(reshape(&[64, 1], &[8, 8, 1]), KeepsTiles);
}

#[test]
fn the_same_shape_is_free() {
    assert_eq!(reshape(&[5, 7], &[5, 7]), Free);
    let odd = laid_out(&[5, 7], &[0, 1], &[&[3, 5], &[2, 2]]);
    assert_eq!(tpu().reshape_cost(&odd, &odd).kind, Free);
    assert_eq!(tpu().reshape_cost(&f32(&[5, 7]), &laid_out(&[5, 7], &[1, 0], &[])).kind, Free);
    // Another layout is a copy.
    assert_eq!(tpu().reshape_cost(&f32(&[5, 7]), &laid_out(&[5, 7], &[0, 1], &[])).kind, Realigns);
}

#[test]
fn a_layout_makes_a_split_free_of_moves() {
    // 16 heads of 64: in {1,2,0} the split dim is not across the lanes.
    let x = laid_out(&[8, 512, 1024], &[1, 2, 0], &[]);
    let heads = laid_out(&[8, 512, 16, 64], &[1, 3, 2, 0], &[]);
    assert_eq!(tpu().reshape_cost(&x, &heads).kind, KeepsTiles);
    let row_major = tpu().reshape_cost(&f32(&[8, 512, 1024]), &f32(&[8, 512, 16, 64]));
    // 8*512 places of 16x64: 2 vectors each, against 8*64*8.
    assert_eq!(row_major, ReshapeCost { realigned_vectors: 8192, kind: Realigns });
}

#[test]
fn explicit_tiles_decide() {
    let two_rows = |dims: &[i64]| {
        let order: Vec<u32> = (0..dims.len() as u32).rev().collect();
        laid_out(dims, &order, &[&[2, 128]])
    };
    let cost = tpu().reshape_cost(&two_rows(&[64, 320]), &two_rows(&[32, 2, 320]));
    assert_eq!(cost.kind, KeepsTiles);
    let cost = tpu().reshape_cost(&two_rows(&[64, 320]), &f32(&[8, 8, 320]));
    assert_eq!(cost.kind, Realigns);
    // One row of T(1,128) fills a chunk.
    let row = laid_out(&[1, 256], &[1, 0], &[&[1, 128]]);
    assert_eq!(tpu().reshape_cost(&f32(&[256]), &row).kind, Free);
}

#[test]
fn no_elements_move_freely() {
    assert_eq!(reshape(&[0, 3], &[7, 0, 9]), Free);
    let (a, b) = (f32(&[0, 3]), f32(&[3, 0]));
    assert_eq!(tpu().transpose_cost(&a, &b, &[1, 0]).kind, Free);
}

#[test]
fn what_cannot_be_told_realigns() {
    const MAX: i64 = i64::MAX;
    let cost = tpu().reshape_cost(&f32(&[MAX, MAX, 2]), &f32(&[MAX, 2, MAX]));
    assert_eq!(cost, ReshapeCost { realigned_vectors: u64::MAX, kind: Realigns });
    assert_eq!(reshape(&[MAX, MAX], &[MAX, MAX]), Free);
    // 2^63-1 = 7 * 1317624576693539401; addresses exceed u64.
    assert_eq!(reshape(&[7, 1_317_624_576_693_539_401, 1], &[MAX, 1]), Realigns);
    let unbounded = f32(&[UNBOUNDED, 8]).with_dynamic(&[true, false]);
    assert_eq!(tpu().reshape_cost(&unbounded, &f32(&[16, 8])).kind, Realigns);
    // Shapes that no verified reshape joins.
    assert_eq!(reshape(&[8, 8], &[8, 9]), Realigns);
    let other = ArrayShape::new(ElementType::S32, [8, 8]);
    assert_eq!(tpu().reshape_cost(&f32(&[8, 8]), &other).kind, Realigns);
}

fn transpose(target: &Target, dims: &[i64], permutation: &[i64]) -> ReshapeCost {
    let permuted: Vec<i64> = permutation.iter().map(|&dim| dims[dim as usize]).collect();
    target.transpose_cost(&f32(dims), &f32(&permuted), permutation)
}

#[test]
fn transposes_of_major_dims_keep_tiles() {
    let tpu = tpu();
    let kind = |dims: &[i64], permutation: &[i64]| transpose(&tpu, dims, permutation).kind;
    assert_eq!(kind(&[2, 3, 9, 200], &[1, 0, 2, 3]), KeepsTiles);
    assert_eq!(kind(&[2, 3, 4, 9, 200], &[2, 1, 0, 3, 4]), KeepsTiles);
    assert_eq!(kind(&[2, 3, 9, 200], &[0, 1, 3, 2]), Realigns);
    assert_eq!(kind(&[2, 3, 9, 200], &[0, 2, 1, 3]), Realigns);
    assert_eq!(kind(&[5, 7], &[0, 1]), Free);
    assert_eq!(kind(&[2, 1, 9, 200], &[1, 0, 2, 3]), Free);
    assert_eq!(kind(&[9], &[0]), Free);
    assert_eq!(kind(&[], &[]), Free);
    // Other tiles, and tiles that cut dims which the first did not.
    let from = laid_out(&[3, 5, 2, 4], &[3, 2, 1, 0], &[&[2, 4]]);
    let to = laid_out(&[5, 3, 2, 4], &[3, 2, 1, 0], &[&[4, 4]]);
    assert_eq!(tpu.transpose_cost(&from, &to, &[1, 0, 2, 3]).kind, Realigns);
    let mixed: &[&[i64]] = &[&[4], &[2, 2]];
    let from = laid_out(&[3, 5, 2, 4], &[3, 2, 1, 0], mixed);
    let to = laid_out(&[5, 3, 2, 4], &[3, 2, 1, 0], mixed);
    assert_eq!(tpu.transpose_cost(&from, &to, &[1, 0, 2, 3]).kind, Realigns);
    // NCHW to NHWC: 2*3*25 vectors (200 rows of 200) grow to 2*200*25.
    let cost = transpose(&tpu, &[2, 3, 200, 200], &[0, 2, 3, 1]);
    assert_eq!(cost, ReshapeCost { realigned_vectors: 10_000, kind: Realigns });
}

#[test]
fn a_layout_can_make_up_for_a_transpose() {
    let (from, to) = (f32(&[16, 256]), laid_out(&[256, 16], &[0, 1], &[]));
    assert_eq!(tpu().transpose_cost(&from, &to, &[1, 0]).kind, KeepsTiles);
    let linear = Target::builtin("linear").unwrap();
    assert_eq!(linear.transpose_cost(&from, &to, &[1, 0]).kind, Free);
}

#[test]
fn transposes_on_linear_memory_move_runs_of_the_minor_dim() {
    let linear = Target::builtin("linear").unwrap();
    assert_eq!(transpose(&linear, &[3, 4, 5], &[1, 0, 2]).kind, KeepsTiles);
    // 240 bytes are 8 vectors of 32.
    let cost = transpose(&linear, &[3, 4, 5], &[0, 2, 1]);
    assert_eq!(cost, ReshapeCost { realigned_vectors: 8, kind: Realigns });
}

#[test]
fn hostile_permutations_realign() {
    let shape = f32(&[4, 4]);
    for permutation in
        [&[][..], &[0], &[0, 0], &[0, 2], &[-1, 0], &[0, 1, 2], &[i64::MIN, i64::MAX]]
    {
        let cost = tpu().transpose_cost(&shape, &shape, permutation);
        assert_eq!(cost.kind, Realigns, "{permutation:?}");
    }
    assert_eq!(tpu().transpose_cost(&f32(&[4, 5]), &f32(&[4, 5]), &[1, 0]).kind, Realigns);
}

//! Footprints worked out by hand.

use crate::model::{f32, laid_out};
use tilewright_ir::element::ElementType;
use tilewright_ir::layout::{Layout, Padding, PaddingValue, Tile};
use tilewright_ir::shape::{ArrayShape, Shape, UNBOUNDED};
use tilewright_target::{Footprint, Target};

fn tpu() -> Target {
    Target::builtin("tpu-like").unwrap()
}

fn linear() -> Target {
    Target::builtin("linear").unwrap()
}

fn of(element_type: ElementType, dims: &[i64]) -> Footprint {
    tpu().footprint(&ArrayShape::new(element_type, dims.iter().copied()))
}

fn footprint(vectors: u64, padded_bytes: u64, bytes: u64) -> Footprint {
    Footprint { vectors, padded_bytes, bytes }
}

#[test]
fn group_norm_pads_12_8_times() {
    // 4*64*64 = 16384 major indices; 32 groups take 32/8 = 4 vectors down,
    // 10 channels take 1 vector of 128 lanes across: 16384*4*1 = 65536
    // vectors of 8*128*4 = 4096 bytes.
    let grouped = of(ElementType::F32, &[4, 64, 64, 32, 10]);
    // 4*64*64*320 elements of 4 bytes = 20971520 bytes.
    assert_eq!(grouped, footprint(65_536, 268_435_456, 20_971_520));
    // 128/10 = 12.8.
    assert_eq!(grouped.padding(), 12.8);

    // 4*64 = 256 major indices; 64/8 = 8 vectors down, 320 -> 384 = 3 across:
    // 256*8*3 = 6144 vectors.
    let flat = of(ElementType::F32, &[4, 64, 64, 320]);
    assert_eq!(flat, footprint(6_144, 25_165_824, 20_971_520));
    // 384/320 = 1.2.
    assert_eq!(flat.padding(), 1.2);
}

#[test]
fn both_minor_dims_pad() {
    // [8,4] in one 8x128 vector: 32 of 1024 places, 32 times.
    assert_eq!(of(ElementType::F32, &[8, 4]), footprint(1, 4096, 128));
    assert_eq!(of(ElementType::F32, &[8, 4]).padding(), 32.0);
    // 9 rows take 2 vectors down, 129 columns 2 across.
    assert_eq!(of(ElementType::F32, &[9, 129]), footprint(4, 4 * 4096, 9 * 129 * 4));
    // A dim of 1 among the minor two takes a whole side of the vector.
    assert_eq!(of(ElementType::F32, &[128, 1]).vectors, 16);
    assert_eq!(of(ElementType::F32, &[128, 1, 1]).vectors, 128);
    assert_eq!(of(ElementType::F32, &[1, 128]).vectors, 1);
}

#[test]
fn narrow_types_pack_along_the_sublanes() {
    // 16-bit: 16x128 in a vector.
    assert_eq!(of(ElementType::BF16, &[16, 128]), footprint(1, 4096, 4096));
    assert_eq!(of(ElementType::BF16, &[17, 128]), footprint(2, 8192, 17 * 128 * 2));
    assert_eq!(of(ElementType::F16, &[8, 128]), footprint(1, 4096, 2048));
    // Group norm again: 32/16 = 2 vectors down.
    assert_eq!(of(ElementType::BF16, &[4, 64, 64, 32, 10]).vectors, 32_768);
    assert_eq!(of(ElementType::BF16, &[4, 64, 64, 32, 10]).padding(), 12.8);
    // 8-bit: 32x128; so are the narrower ones, a byte each unless packed.
    for narrow in [ElementType::S8, ElementType::Pred, ElementType::F8E5M2, ElementType::S4] {
        assert_eq!(of(narrow, &[32, 128]), footprint(1, 4096, 4096), "{narrow}");
        assert_eq!(of(narrow, &[33, 128]), footprint(2, 8192, 33 * 128), "{narrow}");
    }
    for (bits, rows) in [(1, 64), (4, 64), (6, 32), (8, 32), (16, 16), (32, 8), (64, 8)] {
        assert_eq!(tpu().tile(bits), [rows, 128], "{bits} bits");
    }
    assert_eq!(tpu().packing(8), 4);
}

#[test]
fn packed_elements_say_so_in_their_layout() {
    let packed = |bits, rows| {
        let mut layout = Layout::descending(2);
        layout.element_size_in_bits = bits;
        let shape = ArrayShape::new(ElementType::S4, [rows, 128]).with_layout(Some(layout));
        tpu().footprint(&shape)
    };
    // E(4): 64x128 in a vector.
    assert_eq!(packed(4, 64), footprint(1, 4096, 4096));
    assert_eq!(packed(4, 65).vectors, 2);
    // E(2) and E(3) take as much room, because nothing packs narrower than 4 bits.
    assert_eq!(packed(2, 64), footprint(1, 4096, 2048));
    assert_eq!(packed(2, 65).vectors, 2);
    assert_eq!(packed(1, 64), footprint(1, 4096, 1024));
    assert_eq!(packed(3, 64), footprint(1, 4096, 3072));
    // A width that makes no sense counts as one byte each, as without it.
    for nonsense in [0, -1, 8, 1000, i64::MAX, i64::MIN] {
        assert_eq!(packed(nonsense, 64), footprint(2, 8192, 8192), "E({nonsense})");
    }
}

#[test]
fn wide_types_take_several_vectors_per_tile() {
    for wide in [ElementType::F64, ElementType::S64, ElementType::C64] {
        assert_eq!(of(wide, &[8, 128]), footprint(2, 8192, 8192), "{wide}");
        assert_eq!(of(wide, &[9, 128]).vectors, 4, "{wide}");
    }
    assert_eq!(of(ElementType::C128, &[8, 128]), footprint(4, 16_384, 16_384));
    assert_eq!(of(ElementType::F64, &[]), footprint(2, 8192, 8));
}

#[test]
fn rank_0_takes_a_vector_and_rank_1_chunks() {
    assert_eq!(of(ElementType::F32, &[]), footprint(1, 4096, 4));
    assert_eq!(of(ElementType::BF16, &[]), footprint(1, 4096, 2));
    // T(1024): 8*128 elements to a vector.
    assert_eq!(of(ElementType::F32, &[1]), footprint(1, 4096, 4));
    assert_eq!(of(ElementType::F32, &[1024]), footprint(1, 4096, 4096));
    assert_eq!(of(ElementType::F32, &[1025]), footprint(2, 8192, 4100));
    assert_eq!(of(ElementType::BF16, &[2048]), footprint(1, 4096, 4096));
    assert_eq!(of(ElementType::BF16, &[2049]), footprint(2, 8192, 4098));
}

#[test]
fn layouts_say_which_dims_are_minor() {
    // {1,2,0}: dim 1 across the lanes, dim 2 down the rows.
    let heads = laid_out(&[8, 512, 1024], &[1, 2, 0], &[]);
    assert_eq!(tpu().footprint(&heads).vectors, 8 * 4 * 128);
    // 32 groups of 10 with the groups' places minor: 32 -> 128 lanes and
    // 10 -> 16 rows, 2 vectors for each of the 16384.
    let grouped = laid_out(&[4, 64, 64, 32, 10], &[3, 4, 2, 1, 0], &[]);
    assert_eq!(tpu().footprint(&grouped).vectors, 32_768);
    // {1,0} and no layout mean the same.
    assert_eq!(tpu().footprint(&laid_out(&[9, 5], &[1, 0], &[])), tpu().footprint(&f32(&[9, 5])));
}

#[test]
fn explicit_tiles_are_honoured() {
    let tpu = tpu();
    let vectors = |dims: &[i64], tiles: &[&[i64]]| {
        let order: Vec<u32> = (0..dims.len() as u32).rev().collect();
        let shape = laid_out(dims, &order, tiles);
        let footprint = tpu.footprint(&shape);
        (footprint.vectors, footprint.padded_bytes)
    };
    assert_eq!(vectors(&[16, 256], &[&[8, 128]]), (4, 16_384));
    // XLA gives two rows a tile of two rows: 2*128*4 = 1024 bytes.
    assert_eq!(vectors(&[2, 128], &[&[2, 128]]), (1, 1024));
    assert_eq!(vectors(&[2, 1024], &[&[2, 128]]), (2, 8192));
    assert_eq!(vectors(&[2, 1024], &[&[8, 128]]), (8, 32_768));
    // Rank 1 in short chunks, and a scalar in T(128).
    assert_eq!(vectors(&[100], &[&[128]]), (1, 512));
    assert_eq!(vectors(&[], &[&[128]]), (1, 512));
    // 16*256 = 4096 elements in one dim, in chunks of 1000: 5.
    assert_eq!(vectors(&[16, 256], &[&[Tile::COMBINE, 1000]]), (5, 20_000));
    // The second tile cuts the first: 3 rows become 4.
    assert_eq!(vectors(&[3, 128], &[&[3, 128], &[2, 1]]), (1, 4 * 128 * 4));

    // bf16 in XLA's own T(8,128)(2,1): 8 rows of 2 bytes.
    let mut layout = Layout::descending(2);
    layout.tiles.push(Tile { dims: [8, 128].into_iter().collect() });
    layout.tiles.push(Tile { dims: [2, 1].into_iter().collect() });
    let bf16 = ArrayShape::new(ElementType::BF16, [8, 256]).with_layout(Some(layout));
    assert_eq!(tpu.footprint(&bf16), footprint(1, 4096, 4096));
}

#[test]
fn explicit_padding_and_tails_are_honoured() {
    let tpu = tpu();
    let mut padded = Layout::descending(2);
    let dims = [30, 50].into_iter().collect();
    padded.padding = Some(Box::new(Padding { dims, value: PaddingValue::Zero }));
    // 30x50 places in 8x128 tiles: 4 vectors.
    let shape = f32(&[2, 3]).with_layout(Some(padded));
    assert_eq!(tpu.footprint(&shape), footprint(4, 16_384, 24));

    let mut tail = Layout::descending(1);
    tail.tail_padding_alignment = 5000;
    // One chunk of 1024, rounded up to 5000 elements of 4 bytes.
    let shape = f32(&[10]).with_layout(Some(tail));
    assert_eq!(tpu.footprint(&shape), footprint(5, 20_000, 40));
}

#[test]
fn linear_memory_pads_nothing() {
    let linear = linear();
    assert_eq!(linear.vector_bytes(), 32);
    assert_eq!(linear.footprint(&f32(&[32, 10])), footprint(40, 1280, 1280));
    assert_eq!(linear.footprint(&f32(&[3, 3])), footprint(2, 36, 36));
    assert_eq!(linear.footprint(&f32(&[])), footprint(1, 4, 4));
    let tiled = laid_out(&[3, 3], &[0, 1], &[&[8, 128]]);
    assert_eq!(linear.footprint(&tiled), footprint(2, 36, 36));
}

#[test]
fn no_elements_take_nothing() {
    for target in [tpu(), linear()] {
        for dims in [&[0][..], &[8, 0], &[0, 128], &[i64::MAX, i64::MAX, 0]] {
            assert_eq!(target.footprint(&f32(dims)), Footprint::default(), "{dims:?}");
        }
    }
    assert_eq!(Footprint::default().padding(), 1.0);
}

#[test]
fn dynamic_dims_count_as_their_bounds_and_unbounded_ones_as_1() {
    let bounded = f32(&[16, 128]).with_dynamic(&[true, false]);
    assert_eq!(tpu().footprint(&bounded).vectors, 2);
    let unbounded = f32(&[UNBOUNDED, 8, 128]).with_dynamic(&[true, false, false]);
    assert_eq!(tpu().footprint(&unbounded), footprint(1, 4096, 4096));
    assert_eq!(linear().footprint(&unbounded).bytes, 4096);
}

#[test]
fn huge_sizes_saturate() {
    const MAX: i64 = i64::MAX;
    let all = footprint(u64::MAX, u64::MAX, u64::MAX);
    for target in [tpu(), linear()] {
        assert_eq!(target.footprint(&f32(&[MAX; 6])), all);
        let bytes = target.footprint(&f32(&[MAX])).bytes;
        assert_eq!(bytes, u64::MAX);
    }
    // 2^63-1 elements of 4 bytes: 2^53 vectors.
    assert_eq!(tpu().footprint(&f32(&[MAX])).vectors, 1 << 53);
    // Padded rows of one element: 2^63-1 -> 2^63 rows, 8 to a vector.
    assert_eq!(tpu().footprint(&f32(&[MAX, 1])).vectors, 1 << 60);
}

#[test]
fn hostile_layouts_do_no_harm() {
    let tpu = tpu();
    for order in [&[][..], &[7], &[1, 1], &[0, 0, 1, 1, 5], &[u32::MAX]] {
        let cost = tpu.footprint(&laid_out(&[9, 5], order, &[]));
        assert!((1..=2).contains(&cost.vectors), "{order:?}: {cost:?}");
    }
    let long = vec![3; 1000];
    let tiles: [&[&[i64]]; 4] =
        [&[], &[&[], &[2], &[Tile::COMBINE, Tile::COMBINE]], &[&long, &long], &[&[0, 0], &[8, 1]]];
    for tiles in tiles {
        let shape = laid_out(&[9, 5], &[1, 0], tiles);
        assert_ne!(tpu.footprint(&shape).vectors, 0, "{tiles:?}");
    }
}

/// Nothing overflows, divides by zero or indexes past an end.
#[test]
fn extreme_numbers_anywhere_do_no_harm() {
    const EXTREME: [i64; 7] = [i64::MIN, -1, 0, 1, 3, 1 << 32, i64::MAX];
    let pairs = || EXTREME.iter().flat_map(|&a| EXTREME.iter().map(move |&b| (a, b)));
    let mut shapes = vec![];
    for ((a, b), (c, d)) in pairs().flat_map(|dims| pairs().map(move |tile| (dims, tile))) {
        let mut shape = laid_out(&[a, b], &[0, 1], &[&[c, d], &[d, c]]);
        let layout = shape.layout.as_mut().unwrap();
        layout.tail_padding_alignment = c;
        let dims = [d, c].into_iter().collect();
        layout.padding = Some(Box::new(Padding { dims, value: PaddingValue::Zero }));
        shapes.push(shape);
    }
    for target in [tpu(), linear()] {
        for (i, shape) in shapes.iter().enumerate() {
            let footprint = target.footprint(shape);
            assert_eq!(footprint.vectors == 0, shape.dims().contains(&0), "{shape}");
            let other = &shapes[(i * 31 + 7) % shapes.len()];
            for permutation in [[0, 1], [1, 0], [i64::MIN, i64::MAX]] {
                target.transpose_cost(shape, other, &permutation);
            }
            target.reshape_cost(shape, other);
        }
    }
}

#[test]
fn tuples_are_sums_and_tokens_nothing() {
    let vector = || Shape::array(ElementType::F32, [8, 128]);
    let tuple = Shape::Tuple(vec![
        vector(),
        Shape::Tuple(vec![vector(), Shape::Token, Shape::Opaque]),
        Shape::Buffer(Box::new(vector())),
        Shape::Tuple(vec![]),
    ]);
    assert_eq!(tpu().shape_footprint(&tuple), footprint(3, 3 * 4096, 3 * 4096));
    assert_eq!(tpu().shape_footprint(&Shape::Token), Footprint::default());
    let huge = Shape::array(ElementType::F32, [i64::MAX; 4]);
    let huge = tpu().shape_footprint(&Shape::Tuple(vec![huge.clone(), huge]));
    assert_eq!(huge.vectors, u64::MAX);
}

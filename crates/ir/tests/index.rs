//! Strides, addresses in a layout and walks over positions.
use proptest::prelude::*;
use tilewright_ir::types::element::ElementType;
use tilewright_ir::types::index::{
    AddressError, AddressMap, IndexError, PositionIterator, canonical_dim, row_major_strides,
};
use tilewright_ir::types::layout::{Layout, Padding, PaddingValue, RareLayout, Tile};
use tilewright_ir::types::shape::{ArrayShape, Dims, UNBOUNDED};

const COMBINE: i64 = Tile::COMBINE;

fn tiled(minor_to_major: &[u32], tiles: &[&[i64]]) -> Layout {
    let mut layout = Layout::new(minor_to_major.iter().copied());
    layout.tiles = tiles.iter().map(|dims| Tile { dims: (*dims).into() }).collect();
    layout
}

fn padded(minor_to_major: &[u32], padding: &[i64]) -> Layout {
    let mut layout = Layout::new(minor_to_major.iter().copied());
    layout.padding = Some(Box::new(Padding { dims: padding.into(), value: PaddingValue::Zero }));
    layout
}

fn map(dims: &[i64], layout: Layout) -> AddressMap {
    let shape = ArrayShape::new(ElementType::F32, dims.iter().copied()).with_layout(Some(layout));
    AddressMap::new(&shape).unwrap()
}

fn error(dims: &[i64], layout: &Layout) -> AddressError {
    AddressMap::with_layout(dims, layout).unwrap_err()
}

fn ranges(dims: &[i64]) -> Vec<Vec<i64>> {
    PositionIterator::over(dims).unwrap().map(|p| p.to_vec()).collect()
}

/// Returns the buffer's content by address, with `0` for padding; the array holds `letters` in
/// row-major order.
fn stored(letters: &str, map: &AddressMap) -> String {
    let strides = row_major_strides(map.dims()).unwrap();
    let letter = |index: Dims| {
        let at: i64 = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        letters.as_bytes()[usize::try_from(at).unwrap()] as char
    };
    let cells: Vec<String> = (0..map.buffer_elements())
        .map(|address| map.position(address).unwrap().map_or('0', letter).to_string())
        .collect();
    cells.join(" ")
}

// --- The worked examples of S2 (shapes and layouts) ---

#[test]
fn two_by_three_in_both_layouts() {
    assert_eq!(stored("abcdef", &map(&[2, 3], Layout::new([0, 1]))), "a d b e c f");
    assert_eq!(stored("abcdef", &map(&[2, 3], Layout::new([1, 0]))), "a b c d e f");
}

#[test]
fn an_unstated_layout_is_row_major() {
    let shape = ArrayShape::new(ElementType::F32, [2, 3]);
    assert_eq!(stored("abcdef", &AddressMap::new(&shape).unwrap()), "a b c d e f");
    assert_eq!(AddressMap::new(&shape), AddressMap::row_major(&[2, 3]));
}

#[test]
fn padded_dimensions_are_stored_with_their_padding() {
    let padding = map(&[2, 3], padded(&[0, 1], &[3, 5]));
    assert_eq!(stored("abcdef", &padding), "a d 0 b e 0 c f 0 0 0 0 0 0 0");
    // The layout of the 3x5 array `a b c 0 0 / d e f 0 0 / 0 0 0 0 0`.
    let whole = map(&[3, 5], Layout::new([0, 1]));
    assert_eq!(stored("abc00def0000000", &whole), "a d 0 b e 0 c f 0 0 0 0 0 0 0");
    assert_eq!(padding.strides(), Some(&[1, 3][..]));
}

#[test]
fn negative_dim_numbers_count_from_the_end() {
    assert_eq!(canonical_dim(-1, 3), Ok(2));
    assert_eq!(canonical_dim(-3, 3), Ok(0));
    assert_eq!(canonical_dim(0, 3), Ok(0));
    assert_eq!(canonical_dim(2, 3), Ok(2));
    for dim in [3, -4, i64::MIN, i64::MAX] {
        assert_eq!(canonical_dim(dim, 3), Err(IndexError::NoSuchDim { dim, rank: 3 }));
    }
    assert!(canonical_dim(0, 0).is_err() && canonical_dim(-1, 0).is_err());
}

// --- The worked examples of S3 (strides and the position iterator) ---

#[test]
fn strides_and_the_offset_108() {
    let dims = [2, 3, 4, 5];
    assert_eq!(row_major_strides(&dims).unwrap()[..], [60, 20, 5, 1]);
    let map = AddressMap::row_major(&dims).unwrap();
    assert_eq!(map.strides(), Some(&[60, 20, 5, 1][..]));
    assert_eq!(map.linear(&[1, 2, 1, 3]), Ok(108));
    assert_eq!(map.position(108).unwrap().unwrap()[..], [1, 2, 1, 3]);
}

#[test]
fn the_odometer_counts_in_row_major_order() {
    assert_eq!(ranges(&[2, 3]), [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
    let walk = PositionIterator::over(&[2, 3, 4, 5]).unwrap();
    let map = AddressMap::row_major(&[2, 3, 4, 5]).unwrap();
    let addresses: Vec<i64> = walk.map(|p| map.linear(&p).unwrap()).collect();
    assert_eq!(addresses, (0..120).collect::<Vec<_>>());
}

#[test]
fn the_odometer_starts_anywhere_and_has_an_end() {
    let mut walk = PositionIterator::new(&[0, 1, 3], &[2, 2, 4]).unwrap();
    assert_eq!(walk.current(), Some(&[0, 1, 3][..]));
    assert!(walk.advance());
    assert_eq!(walk.current(), Some(&[1, 0, 0][..]));
    assert_eq!(walk.by_ref().count(), 8);
    assert_eq!(walk.current(), None);
    assert!(!walk.advance());
    assert_eq!(walk.next(), None);
}

#[test]
fn a_start_of_another_rank_or_out_of_range_is_an_error() {
    let start = |start: &[i64], dims: &[i64]| PositionIterator::new(start, dims).unwrap_err();
    assert_eq!(start(&[0], &[2, 3]), IndexError::Rank { given: 1, rank: 2 });
    let out_of_range = |dim, index, size| IndexError::OutOfRange { dim, index, size };
    assert_eq!(start(&[0, 3], &[2, 3]), out_of_range(1, 3, 3));
    assert_eq!(start(&[-1, 0], &[2, 3]), out_of_range(0, -1, 2));
    assert_eq!(start(&[0, 1], &[2, 0]), out_of_range(1, 1, 0));
    assert_eq!(start(&[0, 0], &[2, -5]), out_of_range(1, 0, -5));
}

#[test]
fn rank_zero_has_one_position_and_a_zero_size_none() {
    assert_eq!(ranges(&[]), [[0i64; 0]]);
    assert_eq!(ranges(&[3, 0, 2]), Vec::<Vec<i64>>::new());
    assert_eq!(PositionIterator::new(&[2, 0], &[3, 0]).unwrap().next(), None);
}

// --- Tiles: XLA's page on tiled layouts, and by hand ---

#[test]
fn the_documented_two_by_two_tiles() {
    // F32[3,5]{1,0:T(2,2)}: (2,3) is at 17, in 2x3 tiles of 4.
    let map = map(&[3, 5], tiled(&[1, 0], &[&[2, 2]]));
    assert_eq!(map.linear(&[2, 3]), Ok(17));
    assert_eq!(map.position(17).unwrap().unwrap()[..], [2, 3]);
    assert_eq!(map.strides(), None);
    assert_eq!(stored("abcdefghijklmno", &map), "a b f g c d h i e 0 j 0 k l 0 0 m n 0 0 o 0 0 0");
}

#[test]
fn the_documented_repeated_tiles() {
    // Figure 2: 4x8 in (2,4)(2,1): the two rows of a tile are interleaved.
    let bf16_like = map(&[4, 8], tiled(&[1, 0], &[&[2, 4], &[2, 1]]));
    let row: Vec<i64> = (0..8).map(|x| bf16_like.linear(&[0, x]).unwrap()).collect();
    assert_eq!(row, [0, 2, 4, 6, 8, 10, 12, 14]);
    let row: Vec<i64> = (0..8).map(|x| bf16_like.linear(&[3, x]).unwrap()).collect();
    assert_eq!(row, [17, 19, 21, 23, 25, 27, 29, 31]);
    // The alternative 16-bit format: 8x8 in (2,4)(2,1,1,1), (6,5) is at 51.
    let alternative = map(&[8, 8], tiled(&[1, 0], &[&[2, 4], &[2, 1, 1, 1]]));
    assert_eq!(alternative.linear(&[6, 5]), Ok(51));
    // BF16[32,256] in (8,128)(2,1,1,1): tiles one above the other are paired.
    let paired = map(&[32, 256], tiled(&[1, 0], &[&[8, 128], &[2, 1, 1, 1]]));
    assert_eq!((paired.linear(&[0, 0]), paired.linear(&[8, 0])), (Ok(0), Ok(1)));
    assert_eq!(paired.linear(&[0, 1]), Ok(2));
    assert_eq!(paired.buffer_elements(), 32 * 256);
}

#[test]
fn sixteen_bit_tiles_of_a_tpu() {
    // bf16[10,200] in (8,128)(2,1): 2x2 tiles of 1024.
    let map = map(&[10, 200], tiled(&[1, 0], &[&[8, 128], &[2, 1]]));
    assert_eq!(map.buffer_elements(), 4096);
    let at = |y, x| map.linear(&[y, x]).unwrap();
    assert_eq!((at(0, 0), at(1, 0), at(0, 1)), (0, 1, 2));
    assert_eq!((at(2, 0), at(7, 127)), (256, 1023));
    assert_eq!(at(0, 128), 1024);
    // Row 9 is row 1 of the second row of tiles, column 199 is 71 of its tile.
    assert_eq!(at(9, 199), 3 * 1024 + 71 * 2 + 1);
    // Row 10 of the buffer and column 200 hold padding.
    assert_eq!(map.position(2048 + 256).unwrap(), None);
    assert_eq!(map.position(1024 + 72 * 2).unwrap(), None);
}

#[test]
fn a_second_tile_pads_the_first() {
    // (4)(3): 5 elements are 2 tiles of 4, each padded to 2 tiles of 3.
    let map = map(&[5], tiled(&[0], &[&[4], &[3]]));
    assert_eq!(stored("abcde", &map), "a b c d 0 0 e 0 0 0 0 0");
}

#[test]
fn tiles_cut_the_physical_order() {
    // f32[5,3]{0,1:T(2,2)} is f32[3,5]{1,0:T(2,2)} seen the other way round.
    let (one, other) =
        (map(&[5, 3], tiled(&[0, 1], &[&[2, 2]])), map(&[3, 5], tiled(&[1, 0], &[&[2, 2]])));
    for position in ranges(&[5, 3]) {
        let mirrored = [position[1], position[0]];
        assert_eq!(one.linear(&position), other.linear(&mirrored));
    }
}

#[test]
fn a_short_tile_leaves_major_dims_alone() {
    // f32[2,3,5] in T(2,2): two arrays of 24 each.
    let map = map(&[2, 3, 5], tiled(&[2, 1, 0], &[&[2, 2]]));
    assert_eq!(map.linear(&[1, 2, 3]), Ok(24 + 17));
    assert_eq!(map.buffer_elements(), 48);
}

#[test]
fn a_long_tile_finds_dims_of_one() {
    // As TPU dumps have it: f32[]{:T(128)} and f32[100]{0:T(8,128)}.
    let scalar = map(&[], tiled(&[], &[&[128]]));
    assert_eq!((scalar.buffer_elements(), scalar.linear(&[])), (128, Ok(0)));
    assert_eq!(scalar.position(0).unwrap().unwrap().len(), 0);
    assert_eq!(scalar.position(1).unwrap(), None);
    let vector = map(&[100], tiled(&[0], &[&[8, 128]]));
    assert_eq!((vector.buffer_elements(), vector.linear(&[99])), (1024, Ok(99)));
    assert_eq!(vector.position(128).unwrap(), None);
}

#[test]
fn an_empty_tile_cuts_nothing() {
    // Valid HLO: f32[]{:T()}.
    assert_eq!(map(&[], tiled(&[], &[&[]])).buffer_elements(), 1);
    assert_eq!(stored("abcdef", &map(&[2, 3], tiled(&[1, 0], &[&[]]))), "a b c d e f");
}

#[test]
fn combined_dims_are_tiled_as_one() {
    // Documented: [2,7,8,11,10] in (*,*,2,*,3) is [112,110] in (2,3).
    let combined =
        map(&[2, 7, 8, 11, 10], tiled(&[4, 3, 2, 1, 0], &[&[COMBINE, COMBINE, 2, COMBINE, 3]]));
    let merged = map(&[112, 110], tiled(&[1, 0], &[&[2, 3]]));
    assert_eq!(combined.buffer_elements(), merged.buffer_elements());
    assert_eq!(combined.buffer_elements(), 112 * 111);
    for index in [[0, 0, 0, 0, 0], [1, 6, 7, 10, 9], [1, 2, 3, 4, 5], [0, 5, 1, 9, 8]] {
        let both = [index[0] * 56 + index[1] * 8 + index[2], index[3] * 10 + index[4]];
        let address = combined.linear(&index).unwrap();
        assert_eq!(Ok(address), merged.linear(&both));
        assert_eq!(combined.position(address).unwrap().unwrap()[..], index);
    }
}

#[test]
fn padding_comes_before_tiles_and_the_tail_last() {
    let mut layout = tiled(&[0], &[&[4]]);
    layout.padding = padded(&[0], &[5]).padding;
    layout.tail_padding_alignment = 10;
    let map = map(&[3], layout);
    assert_eq!(map.buffer_elements(), 10);
    assert_eq!(stored("abc", &map), "a b c 0 0 0 0 0 0 0");
    assert!(map.position(10).is_err());
}

#[test]
fn a_bounded_dynamic_dim_takes_its_bound() {
    let shape = ArrayShape::new(ElementType::F32, [4, 3]).with_dynamic(&[true, false]);
    assert_eq!(AddressMap::new(&shape).unwrap().buffer_elements(), 12);
}

// --- Arrays without elements ---

#[test]
fn empty_arrays_have_no_addresses() {
    let map = map(&[2, 0, 3], tiled(&[2, 1, 0], &[&[8, 128]]));
    assert_eq!(map.buffer_elements(), 0);
    assert!(map.position(0).is_err());
    assert!(map.linear(&[0, 0, 0]).is_err());
    assert_eq!(row_major_strides(&[2, 0, 3]).unwrap()[..], [0, 0, 0]);
}

#[test]
fn empty_arrays_may_have_any_other_dims() {
    let huge = [i64::MAX, i64::MAX, 0];
    assert_eq!(row_major_strides(&huge).unwrap()[..], [0, 0, 0]);
    let map = map(&huge, tiled(&[2, 1, 0], &[&[COMBINE, 8, 128]]));
    assert_eq!(map.buffer_elements(), 0);
}

#[test]
fn padding_may_give_an_empty_array_a_buffer() {
    let map = map(&[2, 0], padded(&[1, 0], &[2, 2]));
    assert_eq!(map.buffer_elements(), 4);
    assert_eq!(stored("", &map), "0 0 0 0");
}

// --- Errors ---

#[test]
fn sizes_must_be_known_and_countable() {
    let row_major = Layout::new([1, 0]);
    assert_eq!(error(&[2, UNBOUNDED], &row_major), AddressError::Unbounded { dim: 1 });
    assert_eq!(error(&[-7, 2], &row_major), AddressError::Negative { dim: 0, size: -7 });
    assert_eq!(error(&[i64::MAX, 2], &row_major), AddressError::Overflow);
    assert_eq!(row_major_strides(&[i64::MAX, 2]), Err(AddressError::Overflow));
    assert_eq!(row_major_strides(&[UNBOUNDED]), Err(AddressError::Unbounded { dim: 0 }));
}

#[test]
fn padding_up_must_not_overflow() {
    let most = [i64::MAX];
    assert_eq!(error(&most, &tiled(&[0], &[&[2]])), AddressError::Overflow);
    assert_eq!(error(&[3], &tiled(&[0], &[&[i64::MAX, 2]])), AddressError::Overflow);
    let combine: &[i64] = &[COMBINE, 1];
    assert_eq!(error(&[i64::MAX, 3], &tiled(&[1, 0], &[combine])), AddressError::Overflow);
    let mut tail = Layout::new([0]);
    tail.tail_padding_alignment = 2;
    assert_eq!(error(&most, &tail), AddressError::Overflow);
    let padding = padded(&[1, 0], &[i64::MAX, 3]);
    assert_eq!(error(&[2, 3], &padding), AddressError::Overflow);
}

#[test]
fn the_layout_must_order_every_dim_once() {
    assert_eq!(error(&[2, 3], &Layout::new([0])), AddressError::Rank { layout: 1, rank: 2 });
    for bad in [[1, 1], [2, 0], [0, u32::MAX]] {
        let error = error(&[2, 3], &Layout::new(bad));
        assert!(matches!(error, AddressError::NotAPermutation { rank: 2, .. }), "{error}");
    }
}

#[test]
fn padding_must_fit() {
    let rank = AddressError::PaddingRank { padding: 1, rank: 2 };
    assert_eq!(error(&[2, 3], &padded(&[1, 0], &[4])), rank);
    let small = AddressError::PaddedTooSmall { dim: 1, size: 3, padded: 2 };
    assert_eq!(error(&[2, 3], &padded(&[1, 0], &[4, 2])), small);
    assert_eq!(small.to_string(), "dim 1 of size 3 cannot be padded to 2");
}

#[test]
fn tile_sizes_must_make_sense() {
    let bad = |tile: &[i64]| error(&[2, 3], &tiled(&[1, 0], &[&[8], tile]));
    assert_eq!(bad(&[0, 2]), AddressError::TileSize { tile: 1, size: 0 });
    assert_eq!(bad(&[2, -1]), AddressError::TileSize { tile: 1, size: -1 });
    assert_eq!(bad(&[2, COMBINE]), AddressError::CombineLast { tile: 1 });
}

#[test]
fn sparse_and_split_layouts_have_no_single_buffer() {
    let mut layout = Layout::new([0]);
    layout.tail_padding_alignment = -1;
    assert_eq!(error(&[2], &layout), AddressError::TailPadding { alignment: -1 });
    layout.tail_padding_alignment = 0; // As absent in a proto.
    layout.rare = Some(Box::new(RareLayout {
        dynamic_shape_metadata_prefix_bytes: 16,
        ..RareLayout::default()
    }));
    assert!(AddressMap::with_layout(&[2], &layout).is_ok());
    layout.rare =
        Some(Box::new(RareLayout { splits: vec![(0, vec![1])], ..RareLayout::default() }));
    assert_eq!(error(&[2], &layout), AddressError::NotOneBuffer);
}

#[test]
fn indices_and_addresses_must_be_in_range() {
    let map = map(&[2, 3], padded(&[0, 1], &[3, 5]));
    assert_eq!(map.linear(&[0]), Err(IndexError::Rank { given: 1, rank: 2 }));
    let outside = IndexError::OutOfRange { dim: 1, index: 3, size: 3 };
    assert_eq!(map.linear(&[0, 3]), Err(outside));
    assert!(map.linear(&[-1, 0]).is_err());
    for address in [-1, 15, i64::MAX] {
        let outside = IndexError::OutsideBuffer { address, elements: 15 };
        assert_eq!(map.position(address), Err(outside));
    }
}

#[test]
fn many_tiles_take_little_time_and_space() {
    let tile: &[i64] = &[1];
    let map = map(&[7], tiled(&[0], &vec![tile; 100_000]));
    assert_eq!(map.linear(&[6]), Ok(6));
    assert_eq!(map.position(6).unwrap().unwrap()[..], [6]);
}

// --- Any layout ---

/// A buffer made as XLA's page says tiling can be thought of: pad, reshape,
/// transpose, for every tile; `None` is padding. An oracle, nothing shared.
#[derive(Clone, Debug)]
struct Buffer {
    dims: Vec<usize>,
    cells: Vec<Option<Vec<i64>>>,
}

fn count(position: &[i64]) -> Vec<usize> {
    position.iter().map(|&i| usize::try_from(i).unwrap()).collect()
}

impl Buffer {
    fn build(dims: Vec<usize>, cell: impl Fn(&[usize]) -> Option<Vec<i64>>) -> Self {
        let total: usize = dims.iter().product();
        let cells = (0..total).map(|address| {
            let mut rest = address;
            let mut index = vec![0; dims.len()];
            for (slot, size) in index.iter_mut().zip(&dims).rev() {
                *slot = rest % size;
                rest /= size;
            }
            cell(&index)
        });
        Self { cells: cells.collect(), dims }
    }

    fn get(&self, index: &[usize]) -> Option<Vec<i64>> {
        let inside = index.iter().zip(&self.dims).all(|(i, size)| i < size);
        let address = index.iter().zip(&self.dims).fold(0, |at, (i, size)| at * size + i);
        if inside { self.cells[address].clone() } else { None }
    }

    /// The array in physical order with its explicit padding.
    fn untiled(dims: &[i64], layout: &Layout) -> Self {
        let padding = layout.padding.as_ref().map_or(dims, |padding| &padding.dims);
        let order: Vec<usize> = layout.minor_to_major.iter().rev().map(|&d| d as usize).collect();
        Self::build(order.iter().map(|&dim| count(padding)[dim]).collect(), |index| {
            let mut logical = vec![0; dims.len()];
            for (&i, &dim) in index.iter().zip(&order) {
                logical[dim] = i64::try_from(i).unwrap();
            }
            logical.iter().zip(dims).all(|(i, size)| i < size).then_some(logical)
        })
    }

    fn tiled(mut self, tile: &[i64]) -> Self {
        while self.dims.len() < tile.len() {
            self.dims.insert(0, 1);
        }
        let mut sizes = tile.to_vec();
        let start = self.dims.len() - sizes.len();
        while let Some(at) = sizes.iter().position(|&size| size == COMBINE) {
            sizes.remove(at);
            let major = self.dims.remove(start + at);
            self.dims[start + at] *= major;
        }
        let (sizes, n) = (count(&sizes), sizes.len());
        let mut dims = self.dims[..start].to_vec();
        dims.extend((0..n).map(|i| self.dims[start + i].div_ceil(sizes[i])));
        dims.extend(&sizes);
        Self::build(dims, |index| {
            let mut from = index[..start].to_vec();
            from.extend((0..n).map(|i| index[start + i] * sizes[i] + index[start + n + i]));
            self.get(&from)
        })
    }
}

fn any_tile() -> impl Strategy<Value = Tile> {
    let size = prop_oneof![4 => 1i64..5, 1 => Just(COMBINE)];
    (prop::collection::vec(size, 0..4), 1i64..5).prop_map(|(mut dims, last)| {
        dims.push(last);
        Tile { dims: dims.into() }
    })
}

fn any_layout() -> impl Strategy<Value = (Vec<i64>, Layout)> {
    let size = prop_oneof![1 => Just(0), 15 => 1i64..6];
    let parts = prop::collection::vec((size, 0i64..3), 0..=5);
    parts.prop_flat_map(|parts| {
        let rank = u32::try_from(parts.len()).unwrap();
        let order = Just((0..rank).collect::<Vec<u32>>()).prop_shuffle();
        let tiles = prop::collection::vec(any_tile(), 0..3);
        (Just(parts), order, any::<bool>(), tiles, 0i64..9).prop_map(
            |(parts, order, pads, tiles, alignment)| {
                let dims: Vec<i64> = parts.iter().map(|part| part.0).collect();
                let padding: Vec<i64> = parts.iter().map(|part| part.0 + part.1).collect();
                let mut layout = if pads { padded(&order, &padding) } else { Layout::new(order) };
                layout.tiles = tiles.into();
                layout.tail_padding_alignment = alignment;
                (dims, layout)
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn addresses_are_those_of_pad_reshape_transpose((dims, layout) in any_layout()) {
        let map = AddressMap::with_layout(&dims, &layout).unwrap();
        prop_assume!(map.buffer_elements() < 200_000);
        let untiled = Buffer::untiled(&dims, &layout);
        let buffer = layout.tiles.iter().fold(untiled, |buffer, tile| buffer.tiled(&tile.dims));
        let total = i64::try_from(buffer.cells.len()).unwrap();
        let alignment = layout.tail_padding_alignment.max(1);
        prop_assert_eq!(map.buffer_elements(), (total + alignment - 1) / alignment * alignment);
        for address in 0..map.buffer_elements() {
            let cell = buffer.cells.get(usize::try_from(address).unwrap()).cloned().flatten();
            prop_assert_eq!(map.position(address).unwrap().map(|p| p.to_vec()), cell);
        }
    }

    #[test]
    fn linear_and_position_are_inverse((dims, layout) in any_layout()) {
        let map = AddressMap::with_layout(&dims, &layout).unwrap();
        prop_assume!(map.buffer_elements() < 200_000);
        let mut taken = vec![false; usize::try_from(map.buffer_elements()).unwrap()];
        for position in PositionIterator::over(&dims).unwrap() {
            let address = map.linear(&position).unwrap();
            let slot = &mut taken[usize::try_from(address).unwrap()];
            prop_assert!(!std::mem::replace(slot, true), "two elements at {}", address);
            prop_assert_eq!(map.position(address).unwrap(), Some(position));
        }
        for (address, taken) in taken.into_iter().enumerate() {
            let there = map.position(i64::try_from(address).unwrap()).unwrap();
            prop_assert_eq!(there.is_some(), taken);
        }
    }

    #[test]
    fn strides_give_the_same_addresses((dims, layout) in any_layout()) {
        let map = AddressMap::with_layout(&dims, &layout).unwrap();
        let empty = map.buffer_elements() == 0;
        prop_assert_eq!(map.strides().is_some(), empty || layout.tiles.is_empty());
        let Some(strides) = map.strides() else { return Ok(()) };
        for position in PositionIterator::over(&dims).unwrap() {
            let by_strides: i64 = position.iter().zip(strides).map(|(i, s)| i * s).sum();
            prop_assert_eq!(map.linear(&position).unwrap(), by_strides);
        }
    }

    #[test]
    fn nothing_hostile_panics(
        dims in prop::collection::vec(any::<i64>(), 0..4),
        order in prop::collection::vec(0u32..4, 0..4),
        tiles in prop::collection::vec(prop::collection::vec(any::<i64>(), 0..4), 0..3),
        padding in prop::option::of(prop::collection::vec(any::<i64>(), 0..4)),
        alignment in any::<i64>(),
        index in prop::collection::vec(any::<i64>(), 0..4),
    ) {
        let mut layout = Layout::new(order);
        layout.tiles = tiles.into_iter().map(|dims| Tile { dims: dims.into() }).collect();
        layout.padding = padding.map(|dims| {
            Box::new(Padding { dims: dims.into(), value: PaddingValue::Zero })
        });
        layout.tail_padding_alignment = alignment;
        if let Ok(map) = AddressMap::with_layout(&dims, &layout) {
            let _ = map.linear(&index);
            let _ = index.first().map(|&address| map.position(address));
        }
        let _ = PositionIterator::new(&index, &dims).map(|mut walk| walk.next());
        let _ = row_major_strides(&dims);
    }

    #[test]
    fn a_walk_from_any_start_is_the_rest_of_the_whole_walk(
        dims in prop::collection::vec(1i64..4, 0..5),
        skip in any::<prop::sample::Index>(),
    ) {
        let all = ranges(&dims);
        let skip = skip.index(all.len());
        let walk = PositionIterator::new(&all[skip], &dims).unwrap();
        let rest: Vec<Vec<i64>> = walk.map(|p| p.to_vec()).collect();
        prop_assert_eq!(&rest[..], &all[skip..]);
    }
}

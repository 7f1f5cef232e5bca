//! Element types, shapes, layouts and how they are written.
use crate::common;
use crate::common::shape;
use tilewright_ir::types::element::NumberClass::{self, Bool, Complex, Float, Signed, Unsigned};
use tilewright_ir::types::layout::RareLayout;
use tilewright_ir::types::shape::{UNBOUNDED, checked_product};
use tilewright_ir::{ArrayShape, ElementType, Layout, Padding, PaddingValue, Shape, Tile};

/// Name, bits of information, bytes in memory, kind.
const TYPES: [(&str, u32, u32, NumberClass); 32] = [
    ("pred", 1, 1, Bool),
    ("s1", 1, 1, Signed),
    ("s2", 2, 1, Signed),
    ("s4", 4, 1, Signed),
    ("s8", 8, 1, Signed),
    ("s16", 16, 2, Signed),
    ("s32", 32, 4, Signed),
    ("s64", 64, 8, Signed),
    ("u1", 1, 1, Unsigned),
    ("u2", 2, 1, Unsigned),
    ("u4", 4, 1, Unsigned),
    ("u8", 8, 1, Unsigned),
    ("u16", 16, 2, Unsigned),
    ("u32", 32, 4, Unsigned),
    ("u64", 64, 8, Unsigned),
    ("f4e2m1fn", 4, 1, Float),
    ("f6e2m3fn", 6, 1, Float),
    ("f6e3m2fn", 6, 1, Float),
    ("f8e3m4", 8, 1, Float),
    ("f8e4m3", 8, 1, Float),
    ("f8e4m3fn", 8, 1, Float),
    ("f8e4m3b11fnuz", 8, 1, Float),
    ("f8e4m3fnuz", 8, 1, Float),
    ("f8e5m2", 8, 1, Float),
    ("f8e5m2fnuz", 8, 1, Float),
    ("f8e8m0fnu", 8, 1, Float),
    ("f16", 16, 2, Float),
    ("bf16", 16, 2, Float),
    ("f32", 32, 4, Float),
    ("f64", 64, 8, Float),
    ("c64", 64, 8, Complex),
    ("c128", 128, 16, Complex),
];

#[test]
fn element_types_are_those_of_xla() {
    assert_eq!(ElementType::ALL.len(), TYPES.len());
    for (&element_type, (name, bits, bytes, class)) in ElementType::ALL.iter().zip(TYPES) {
        assert_eq!(element_type.name(), name);
        assert_eq!(element_type.to_string(), name);
        assert_eq!(ElementType::from_name(name), Some(element_type));
        assert_eq!(element_type.bits(), bits, "{name}");
        assert_eq!(element_type.bytes(), bytes, "{name}");
        assert_eq!(element_type.class(), class, "{name}");
        assert_eq!(element_type.is_float(), class == Float, "{name}");
        assert_eq!(element_type.is_integer(), matches!(class, Signed | Unsigned), "{name}");
        assert_eq!(element_type.is_complex(), class == Complex, "{name}");
        assert_eq!(element_type.complex_part().is_some(), class == Complex, "{name}");
    }
    assert_eq!(ElementType::C64.complex_part(), Some(ElementType::F32));
    assert_eq!(ElementType::C128.complex_part(), Some(ElementType::F64));
    for unknown in ["", "F32", "float", "tuple", "token", "opaque", "f8", "s128"] {
        assert_eq!(ElementType::from_name(unknown), None, "{unknown}");
    }
}

fn f32s(dims: &[i64]) -> ArrayShape {
    ArrayShape::new(ElementType::F32, dims.iter().copied())
}

#[test]
fn elements_are_counted_without_overflow() {
    let count = |dims: &[i64]| f32s(dims).num_elements();
    assert_eq!(count(&[]), Some(1));
    assert_eq!(count(&[2, 3, 4]), Some(24));
    assert_eq!(count(&[i64::MAX]), Some(i64::MAX));
    assert_eq!(count(&[i64::MAX, 2]), None);
    assert_eq!(count(&[1 << 32, 1 << 31]), None);
    assert_eq!(count(&[1 << 32, 1 << 30]), Some(1 << 62));
    assert_eq!(count(&[UNBOUNDED]), None);
    assert_eq!(count(&[-1]), None);
    // A zero makes it zero wherever it stands, except beside an unbounded dim.
    assert_eq!(count(&[i64::MAX, i64::MAX, 0]), Some(0));
    assert_eq!(count(&[0, i64::MAX, i64::MAX]), Some(0));
    assert_eq!(count(&[0, UNBOUNDED]), None);
    assert_eq!(checked_product(&[3, 0, 5]), Some(0));

    assert_eq!(f32s(&[3, 5]).num_bytes(), Some(60));
    assert_eq!(f32s(&[i64::MAX]).num_bytes(), None);
    assert_eq!(ArrayShape::new(ElementType::S4, [3]).num_bytes(), Some(3));
    assert_eq!(ArrayShape::new(ElementType::Pred, [i64::MAX]).num_bytes(), Some(i64::MAX));
}

#[test]
fn ranks_and_dynamic_dims() {
    let array = f32s(&[1, 4, 1, 5]);
    assert_eq!((array.rank(), array.true_rank()), (4, 2));
    assert_eq!(f32s(&[0, 1]).true_rank(), 1);
    assert!(array.is_static());
    let dynamic = f32s(&[4, 5]).with_dynamic(&[true, false]);
    assert!(dynamic.dim_is_dynamic(0) && !dynamic.dim_is_dynamic(1));
    assert!(!dynamic.dim_is_dynamic(2), "there is no such dim");
    assert!(!dynamic.is_static());
    assert_eq!(dynamic.num_elements(), Some(20), "of the bounds");
    assert!(!dynamic.compatible(&f32s(&[4, 5])));
    assert_eq!(f32s(&[4]).with_dynamic(&[false]), f32s(&[4]));
    assert_eq!(dynamic.with_dynamic(&[false, false]), f32s(&[4, 5]));
}

#[test]
fn compatible_shapes_may_differ_in_layout_alone() {
    let laid_out = f32s(&[2, 3]).with_layout(Some(Layout::new([0, 1])));
    assert_ne!(laid_out, f32s(&[2, 3]));
    assert!(laid_out.compatible(&f32s(&[2, 3])));
    assert!(!laid_out.compatible(&f32s(&[3, 2])));
    assert!(!laid_out.compatible(&ArrayShape::new(ElementType::S32, [2, 3])));
    let shapes = ["f32[2]", "(f32[2])", "(f32[2], s32[])", "()", "token[]", "opaque[]"];
    for a in shapes {
        for b in shapes {
            assert_eq!(shape(a).compatible(&shape(b)), a == b, "{a} {b}");
        }
    }
    let buffer = |text| Shape::Buffer(Box::new(shape(text)));
    assert!(buffer("f32[2]").compatible(&buffer("f32[2]")));
    assert!(!buffer("f32[2]").compatible(&buffer("f32[3]")));
    assert!(!buffer("f32[2]").compatible(&shape("f32[2]")));

    let tuple = Shape::Tuple(vec![laid_out.clone().into(), Shape::Token]);
    assert_eq!(tuple.without_layout().to_string(), "(f32[2,3], token[])");
    assert_eq!(
        Shape::Buffer(Box::new(tuple)).without_layout().to_string(),
        "b((f32[2,3], token[]))"
    );
    assert!(laid_out.layout_or_default() != Layout::descending(2));
    assert_eq!(f32s(&[2, 3]).layout_or_default(), Layout::descending(2));
    let default = f32s(&[2, 3]).with_layout(Some(Layout::descending(2)));
    assert!(default.has_default_layout() && f32s(&[2, 3]).has_default_layout());
    assert!(!laid_out.has_default_layout());
}

#[test]
fn leaves_come_in_order() {
    let nested = shape("(f32[1], (s32[2], (), (token[])), pred[3])");
    let leaves: Vec<String> = nested.leaves().iter().map(ToString::to_string).collect();
    assert_eq!(leaves, ["f32[1]", "s32[2]", "token[]", "pred[3]"]);
    assert_eq!(shape("f32[2]").leaves(), [&shape("f32[2]")]);
    assert_eq!(shape("()").leaves(), Vec::<&Shape>::new());
    // No recursion on the way to the leaves of a deep tuple.
    let mut deep = shape("f32[]");
    for _ in 0..10_000 {
        deep = Shape::Tuple(vec![deep]);
    }
    assert_eq!(deep.leaves().len(), 1);
    std::mem::forget(deep); // Dropping it does recurse.
}

#[test]
fn shapes_are_written_as_xla_writes_them() {
    for text in [
        "f32[]",
        "bf16[2,3]",
        "f32[<=16,?]",
        "f32[<=16,256]",
        "()",
        "(f32[2], (s32[], token[]), opaque[])",
        "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[])",
    ] {
        assert_eq!(shape(&text.replace("/*index=5*/", "")).to_string(), text);
    }
    let eleven = Shape::Tuple(vec![shape("s8[]"); 11]);
    let text = eleven.to_string();
    assert!(text.contains(", /*index=5*/s8[]") && text.ends_with(", /*index=10*/s8[])"), "{text}");
    assert_eq!(Shape::Buffer(Box::new(shape("f32[8]"))).to_string(), "b(f32[8])");
    assert_eq!(Shape::Buffer(Box::new(shape("(f32[8])"))).to_string(), "b((f32[8]))");
}

/// `f32[16,256]` in the descending layout with these changes.
#[track_caller]
fn written(element: &str, change: impl FnOnce(&mut Layout), expected: &str) {
    let Shape::Array(array) = shape(element) else { panic!("{element} is no array") };
    let mut layout = Layout::descending(array.rank());
    change(&mut layout);
    let shape = array.with_layout(Some(layout));
    assert_eq!(shape.to_string(), format!("{element}{expected}"));
}

fn tile(dims: &[i64]) -> Tile {
    Tile { dims: dims.into() }
}

#[test]
fn layouts_are_written_as_xla_writes_them() {
    written("f32[16,256]", |_| {}, "{1,0}");
    written("f32[16,256]", |l| l.minor_to_major.reverse(), "{0,1}");
    written("f32[16,256]", |l| l.tiles.push(tile(&[8, 128])), "{1,0:T(8,128)}");
    written(
        "bf16[16,256]",
        |l| {
            l.tiles.extend([tile(&[8, 128]), tile(&[2, 1])]);
            l.memory_space = 1;
        },
        "{1,0:T(8,128)(2,1)S(1)}",
    );
    written(
        "s4[16,256]",
        |l| {
            l.tiles.push(tile(&[8, 128]));
            l.element_size_in_bits = 4;
            l.memory_space = 1;
        },
        "{1,0:T(8,128)E(4)S(1)}",
    );
    written(
        "f32[16,256]",
        |l| {
            l.tiles.push(tile(&[8, 128]));
            l.tail_padding_alignment = 1024;
        },
        "{1,0:T(8,128)L(1024)}",
    );
    written("f32[16,256]", |l| l.tiles.push(tile(&[Tile::COMBINE, 128])), "{1,0:T(*,128)}");
    written("f32[16,256]", |l| l.memory_space = 5, "{1,0:S(5)}");
    // A scalar says nothing, unless its layout does.
    written("f32[]", |_| {}, "");
    written("f32[]", |l| l.tiles.push(tile(&[128])), "{:T(128)}");
    written("f32[<=16,?]", |_| {}, "{1,0}");
}

#[test]
fn rare_layouts_are_written_as_xla_writes_them() {
    let rare = |change: fn(&mut RareLayout)| {
        move |layout: &mut Layout| {
            let mut rare = RareLayout::default();
            change(&mut rare);
            layout.rare = Some(Box::new(rare));
        }
    };
    let sparse = rare(|r| {
        r.index_type = Some(ElementType::U32);
        r.pointer_type = Some(ElementType::U64);
    });
    written("f32[16,256]", sparse, "{1,0:#(u32)*(u64)}");
    let split = rare(|r| r.splits = vec![(1, vec![64, 128])]);
    let with_space = move |layout: &mut Layout| {
        split(layout);
        layout.memory_space = 5;
    };
    written("f32[16,256]", with_space, "{1,0:S(5)SC(1:64,128)}");
    let prefix = rare(|r| r.dynamic_shape_metadata_prefix_bytes = 16);
    written("f32[<=16,256]", prefix, "{1,0:M(16)}");
    let physical = rare(|r| r.physical_shape = Some(Shape::array(ElementType::F32, [2])));
    written("f32[16,256]", physical, "{1,0:P(f32[2])}");
}

#[test]
fn padding_is_written_as_ours() {
    let padded = |value| {
        move |layout: &mut Layout| {
            layout.minor_to_major.reverse();
            layout.padding = Some(Box::new(Padding { dims: common::dims(&[3, 5]), value }));
        }
    };
    written("f32[2,3]", padded(PaddingValue::Zero), "{0,1:P(3,5)}");
    written("f32[2,3]", padded(PaddingValue::MinusInfinity), "{0,1:P(3,5)V(-inf)}");
    written("f32[2,3]", padded(PaddingValue::Unknown), "{0,1:P(3,5)V(unknown)}");
    for (value, name) in PaddingValue::NAMES {
        assert_eq!(value.name(), name);
        assert_eq!(PaddingValue::from_name(name), Some(value));
    }
    assert_eq!(PaddingValue::from_name("two"), None);
    assert_eq!(PaddingValue::default(), PaddingValue::Zero);
}

#[test]
fn default_layouts_have_nothing_to_say() {
    assert!(Layout::descending(3).is_default() && Layout::new([]).is_default());
    assert_eq!(Layout::descending(3).minor_to_major.as_slice(), [2, 1, 0]);
    assert_eq!(Layout::descending(3).rank(), 3);
    assert!(!Layout::new([0, 1]).is_default());
    let mut tiled = Layout::descending(2);
    tiled.tiles.push(tile(&[8, 128]));
    assert!(!tiled.is_default());
    // `Layout::default()` lacks XLA's tail alignment of 1.
    assert_ne!(Layout::default(), Layout::new([]));
}

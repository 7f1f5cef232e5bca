//! Shapes and layouts.

use tilewright_ir::layout::RareLayout;
use tilewright_ir::shape::UNBOUNDED;
use tilewright_ir::{ArrayShape, Dims, Layout, Padding, PaddingValue, ProgramShape, Shape, Tile};

use crate::error::{ProtoError, Within as _, each};
use crate::generated::xla::{
    LayoutProto, ProgramShapeProto, ShapeProto, SplitConfigProto, TileProto,
};
use crate::words::{element_number, element_type};

const TUPLE: i32 = 13;
const OPAQUE: i32 = 14;
const TOKEN: i32 = 17;
const BUFFER: i32 = 34;

pub(crate) fn decode(proto: &ShapeProto) -> Result<Shape, ProtoError> {
    Ok(match proto.element_type {
        TUPLE => Shape::Tuple(each("tuple_shapes", &proto.tuple_shapes, decode)?),
        OPAQUE => Shape::Opaque,
        TOKEN => Shape::Token,
        BUFFER => match &proto.tuple_shapes[..] {
            [inner] => Shape::Buffer(Box::new(decode(inner).within("tuple_shapes[0]")?)),
            _ => return Err(ProtoError::new("a buffer that is not of one array")),
        },
        _ => Shape::Array(decode_array(proto)?),
    })
}

fn decode_array(proto: &ShapeProto) -> Result<ArrayShape, ProtoError> {
    let element = element_type(proto.element_type).within("element_type")?;
    let dynamic = &proto.is_dynamic_dimension;
    if !dynamic.is_empty() && dynamic.len() != proto.dimensions.len() {
        let (flags, dims) = (dynamic.len(), proto.dimensions.len());
        let message = format!("{flags} flags for {dims} dims");
        return Err(ProtoError::new(message).within("is_dynamic_dimension"));
    }
    for (dim, &size) in proto.dimensions.iter().enumerate() {
        let unbounded = size == UNBOUNDED && dynamic.get(dim) == Some(&true);
        if size < 0 && !unbounded {
            let error = ProtoError::new(format!("a dim of size {size}"));
            return Err(error.within_element("dimensions", dim));
        }
    }
    let shape = ArrayShape::new(element, proto.dimensions.iter().copied()).with_dynamic(dynamic);
    let layout = proto.layout.as_ref();
    let layout = layout.map(|layout| decode_layout(layout, shape.rank())).transpose();
    // A layout of no dims orders nothing, so it means nothing.
    let layout = layout.within("layout")?.filter(|layout| shape.rank() > 0 || !layout.is_default());
    Ok(shape.with_layout(layout))
}

fn decode_layout(proto: &LayoutProto, rank: usize) -> Result<Layout, ProtoError> {
    if proto.minor_to_major.len() != rank {
        let message = format!("{} dims for an array of {rank}", proto.minor_to_major.len());
        return Err(ProtoError::new(message).within("minor_to_major"));
    }
    let order = each("minor_to_major", &proto.minor_to_major, |&dim| {
        let in_range = u32::try_from(dim).ok().filter(|&dim| (dim as usize) < rank);
        in_range.ok_or_else(|| ProtoError::new(format!("there is no dim {dim}")))
    })?;
    let tiles = proto.tiles.iter().map(|tile| Tile { dims: tile.dimensions.as_slice().into() });
    Ok(Layout {
        minor_to_major: order,
        tiles: tiles.collect(),
        padding: decode_padding(proto, rank)?,
        memory_space: proto.memory_space,
        element_size_in_bits: proto.element_size_in_bits,
        tail_padding_alignment: match proto.tail_padding_alignment_in_elements {
            0 => 1,
            alignment => alignment,
        },
        rare: decode_rare(proto)?,
    })
}

fn decode_padding(proto: &LayoutProto, rank: usize) -> Result<Option<Box<Padding>>, ProtoError> {
    let dims = &proto.padded_dimensions;
    if dims.is_empty() {
        return Ok(None);
    }
    if dims.len() != rank {
        let message = format!("{} dims for an array of {rank}", dims.len());
        return Err(ProtoError::new(message).within("padded_dimensions"));
    }
    let found = PADDING_VALUES.iter().find(|(number, _)| *number == proto.padding_value);
    let (_, value) = found.ok_or_else(|| {
        ProtoError::unknown("padding value", proto.padding_value).within("padding_value")
    })?;
    Ok(Some(Box::new(Padding { dims: Dims::from_slice(dims), value: *value })))
}

/// The numbers of XLA's former `PaddingValue`, which had no infinities.
const PADDING_VALUES: [(i32, PaddingValue); 6] = [
    (5, PaddingValue::Unknown),
    (1, PaddingValue::Zero),
    (2, PaddingValue::One),
    (3, PaddingValue::Lowest),
    (4, PaddingValue::Highest),
    // No value was given.
    (0, PaddingValue::Unknown),
];

fn decode_rare(proto: &LayoutProto) -> Result<Option<Box<RareLayout>>, ProtoError> {
    let optional = |number: i32| (number != 0).then(|| element_type(number)).transpose();
    let physical = proto.physical_shape.as_deref().map(decode).transpose();
    let splits = proto.split_configs.iter();
    let rare = RareLayout {
        index_type: optional(proto.index_primitive_type).within("index_primitive_type")?,
        pointer_type: optional(proto.pointer_primitive_type).within("pointer_primitive_type")?,
        splits: splits.map(|split| (split.dimension, split.split_indices.clone())).collect(),
        physical_shape: physical.within("physical_shape")?,
        dynamic_shape_metadata_prefix_bytes: proto.dynamic_shape_metadata_prefix_bytes,
    };
    Ok((rare != RareLayout::default()).then(|| Box::new(rare)))
}

/// Returns a shape as XLA writes it: with every layout stated.
pub(crate) fn encode(shape: &Shape) -> Result<ShapeProto, ProtoError> {
    Ok(match shape {
        Shape::Array(array) => encode_array(array)?,
        Shape::Tuple(elements) => ShapeProto {
            element_type: TUPLE,
            tuple_shapes: each("tuple_shapes", elements, encode)?,
            ..ShapeProto::default()
        },
        Shape::Buffer(inner) => ShapeProto {
            element_type: BUFFER,
            tuple_shapes: vec![encode(inner).within("tuple_shapes[0]")?],
            ..ShapeProto::default()
        },
        Shape::Token => ShapeProto { element_type: TOKEN, ..ShapeProto::default() },
        Shape::Opaque => ShapeProto { element_type: OPAQUE, ..ShapeProto::default() },
    })
}

pub(crate) fn encode_array(array: &ArrayShape) -> Result<ShapeProto, ProtoError> {
    let layout = encode_layout(&array.layout_or_default()).within("layout")?;
    Ok(ShapeProto {
        element_type: element_number(array.element_type),
        dimensions: array.dims().to_vec(),
        tuple_shapes: Vec::new(),
        layout: Some(Box::new(layout)),
        is_dynamic_dimension: (0..array.rank()).map(|dim| array.dim_is_dynamic(dim)).collect(),
    })
}

fn encode_layout(layout: &Layout) -> Result<LayoutProto, ProtoError> {
    let tiles = layout.tiles.iter().map(|tile| TileProto { dimensions: tile.dims.to_vec() });
    let mut proto = LayoutProto {
        minor_to_major: layout.minor_to_major.iter().map(|&dim| i64::from(dim)).collect(),
        tiles: tiles.collect(),
        element_size_in_bits: layout.element_size_in_bits,
        memory_space: layout.memory_space,
        tail_padding_alignment_in_elements: layout.tail_padding_alignment,
        ..LayoutProto::default()
    };
    if let Some(padding) = &layout.padding {
        proto.padded_dimensions = padding.dims.to_vec();
        proto.padding_value = padding_number(padding.value).within("padding_value")?;
    }
    if let Some(rare) = &layout.rare {
        encode_rare(rare, &mut proto)?;
    }
    Ok(proto)
}

fn padding_number(value: PaddingValue) -> Result<i32, ProtoError> {
    let found = PADDING_VALUES.iter().find(|(_, other)| *other == value);
    let error = || {
        let message = format!("proto has no number for padding with {value:?}");
        ProtoError::with_help(message, "strip the padding, or write text")
    };
    found.map(|&(number, _)| number).ok_or_else(error)
}

fn encode_rare(rare: &RareLayout, proto: &mut LayoutProto) -> Result<(), ProtoError> {
    proto.index_primitive_type = rare.index_type.map_or(0, element_number);
    proto.pointer_primitive_type = rare.pointer_type.map_or(0, element_number);
    let physical = rare.physical_shape.as_ref().map(encode).transpose();
    proto.physical_shape = physical.within("physical_shape")?.map(Box::new);
    proto.dynamic_shape_metadata_prefix_bytes = rare.dynamic_shape_metadata_prefix_bytes;
    let splits = rare.splits.iter();
    proto.split_configs = splits
        .map(|(dimension, indices)| SplitConfigProto {
            dimension: *dimension,
            split_indices: indices.clone(),
        })
        .collect();
    Ok(())
}

pub(crate) fn decode_program(proto: &ProgramShapeProto) -> Result<ProgramShape, ProtoError> {
    let result = proto.result.as_ref().ok_or_else(|| ProtoError::new("the result is missing"))?;
    Ok(ProgramShape {
        parameters: each("parameters", &proto.parameters, decode)?,
        result: decode(result).within("result")?,
    })
}

/// Returns the shape of a computation, with the names of its parameters.
pub(crate) fn encode_program<'a>(
    parameters: impl IntoIterator<Item = &'a Shape>,
    result: &Shape,
    parameter_names: Vec<String>,
) -> Result<ProgramShapeProto, ProtoError> {
    Ok(ProgramShapeProto {
        parameters: each("parameters", parameters, encode)?,
        result: Some(encode(result).within("result")?),
        parameter_names,
    })
}

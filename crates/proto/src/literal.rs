//! Values. On the wire elements stand in the order of the layout, here in
//! logical order.

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::index::AddressMap;
use tilewright_ir::shape::checked_product;
use tilewright_ir::types::index::PositionIterator;
use tilewright_ir::{ArrayLiteral, ArrayShape, Data, ElementType, Layout, Literal, Shape};

use crate::error::{ProtoError, Within as _, each};
use crate::generated::xla::{LiteralProto, ShapeProto};
use crate::shape;

pub(crate) fn decode(proto: LiteralProto) -> Result<Literal, ProtoError> {
    let shape = proto.shape.as_ref().ok_or_else(|| ProtoError::new("the shape is missing"))?;
    match shape::decode(shape).within("shape")? {
        Shape::Array(array) => {
            let data = data_of(array.element_type, proto)?;
            in_logical_order(&array, data).map(Literal::Array)
        }
        Shape::Tuple(elements) => decode_tuple(&elements, proto.tuple_literals),
        Shape::Token => Ok(Literal::Token),
        other @ (Shape::Buffer(_) | Shape::Opaque) => {
            Err(ProtoError::new(format!("there are no values of {other}")))
        }
    }
}

fn decode_tuple(shapes: &[Shape], parts: Vec<LiteralProto>) -> Result<Literal, ProtoError> {
    if shapes.len() != parts.len() {
        let message = format!("{} values for a tuple of {}", parts.len(), shapes.len());
        return Err(ProtoError::new(message).within("tuple_literals"));
    }
    let parts = parts
        .into_iter()
        .enumerate()
        .map(|(at, part)| decode(part).map_err(|error| error.within_element("tuple_literals", at)));
    Ok(Literal::Tuple(parts.collect::<Result<_, _>>()?))
}

/// Returns an array of elements that stand in the order of the layout.
pub(crate) fn in_logical_order(shape: &ArrayShape, data: Data) -> Result<ArrayLiteral, ProtoError> {
    let expected = shape.num_elements().and_then(|count| usize::try_from(count).ok());
    if expected != Some(data.len()) {
        return Err(ProtoError::new(format!("{} elements for {shape}", data.len())));
    }
    let data = match physical_positions(shape, data.len())? {
        Some(positions) => data.gather(positions.into_iter()),
        None => data,
    };
    ArrayLiteral::new(shape.element_type, shape.dims().iter().copied(), data)
        .map_err(|error| ProtoError::new(error.to_string()))
}

/// Returns for each position in row-major order the place of the element in a buffer without
/// padding; `None` if that is the same order. The caller has checked the number of elements, so
/// the list is not longer than they are.
fn physical_positions(shape: &ArrayShape, count: usize) -> Result<Option<Vec<usize>>, ProtoError> {
    let Some(layout) = &shape.layout else { return Ok(None) };
    // Tiles and padding are how devices store it, not how it is written.
    let order = Layout::new(layout.minor_to_major.iter().copied());
    if order.is_default() || count <= 1 {
        return Ok(None);
    }
    let wrong = |_| ProtoError::new("the layout does not fit the dims").within("shape.layout");
    let map = AddressMap::with_layout(shape.dims(), &order).map_err(wrong)?;
    let outside = || ProtoError::new("the layout does not fit the dims").within("shape.layout");
    let mut walk = PositionIterator::over(shape.dims()).map_err(|_| outside())?;
    let mut positions = Vec::with_capacity(count);
    while let Some(position) = walk.current() {
        let address = map.linear(position).ok().and_then(|at| usize::try_from(at).ok());
        positions.push(address.ok_or_else(outside)?);
        walk.advance();
    }
    Ok(Some(positions))
}

/// Little-endian pairs of bytes.
fn pairs<T>(bytes: &[u8], make: impl Fn([u8; 2]) -> T) -> Result<Vec<T>, ProtoError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(ProtoError::new("an odd number of bytes for elements of two"));
    }
    Ok(pairs.iter().map(|&pair| make(pair)).collect())
}

fn complex<T: Copy>(parts: &[T]) -> Result<Vec<Complex<T>>, ProtoError> {
    let (pairs, rest) = parts.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(ProtoError::new("an odd number of parts for complex elements"));
    }
    Ok(pairs.iter().map(|&[re, im]| Complex { re, im }).collect())
}

/// Returns the value in the lowest bits of a byte; signed ones are extended.
pub(crate) fn signed(bytes: &[u8], bits: u32) -> Vec<i8> {
    let unused = 8 - bits;
    bytes.iter().map(|&byte| (byte << unused).cast_signed() >> unused).collect()
}

fn unsigned(mut bytes: Vec<u8>, bits: u32) -> Vec<u8> {
    let mask = u8::MAX >> 8u32.saturating_sub(bits);
    bytes.iter_mut().for_each(|byte| *byte &= mask);
    bytes
}

fn data_of(element: ElementType, proto: LiteralProto) -> Result<Data, ProtoError> {
    let bits = element.bits();
    Ok(match element {
        ElementType::Pred => Data::Pred(proto.preds),
        ElementType::S1 => Data::S8(signed(&proto.s1s, bits)),
        ElementType::S2 => Data::S8(signed(&proto.s2s, bits)),
        ElementType::S4 => Data::S8(signed(&proto.s4s, bits)),
        ElementType::S8 => Data::S8(signed(&proto.s8s, bits)),
        ElementType::S16 => Data::S16(pairs(&proto.s16s, i16::from_le_bytes)?),
        ElementType::S32 => Data::S32(proto.s32s),
        ElementType::S64 => Data::S64(proto.s64s),
        ElementType::U1 => Data::U8(unsigned(proto.u1s, bits)),
        ElementType::U2 => Data::U8(unsigned(proto.u2s, bits)),
        ElementType::U4 => Data::U8(unsigned(proto.u4s, bits)),
        ElementType::U8 => Data::U8(proto.u8s),
        ElementType::U16 => Data::U16(pairs(&proto.u16s, u16::from_le_bytes)?),
        ElementType::U32 => Data::U32(proto.u32s),
        ElementType::U64 => Data::U64(proto.u64s),
        ElementType::F4E2M1FN => Data::U8(unsigned(proto.f4e2m1fns, bits)),
        ElementType::F6E2M3FN => Data::U8(unsigned(proto.f6e2m3fns, bits)),
        ElementType::F6E3M2FN => Data::U8(unsigned(proto.f6e3m2fns, bits)),
        ElementType::F8E3M4 => Data::U8(proto.f8e3m4s),
        ElementType::F8E4M3 => Data::U8(proto.f8e4m3s),
        ElementType::F8E4M3FN => Data::U8(proto.f8e4m3fns),
        ElementType::F8E4M3B11FNUZ => Data::U8(proto.f8e4m3b11fnuzs),
        ElementType::F8E4M3FNUZ => Data::U8(proto.f8e4m3fnuzs),
        ElementType::F8E5M2 => Data::U8(proto.f8e5m2s),
        ElementType::F8E5M2FNUZ => Data::U8(proto.f8e5m2fnuzs),
        ElementType::F8E8M0FNU => Data::U8(proto.f8e8m0fnus),
        ElementType::F16 => Data::F16(pairs(&proto.f16s, f16::from_le_bytes)?),
        ElementType::BF16 => Data::BF16(pairs(&proto.bf16s, bf16::from_le_bytes)?),
        ElementType::F32 => Data::F32(proto.f32s),
        ElementType::F64 => Data::F64(proto.f64s),
        ElementType::C64 => Data::C64(complex(&proto.c64s)?),
        ElementType::C128 => Data::C128(complex(&proto.c128s)?),
    })
}

/// Returns a value of this shape, whose layout orders the elements.
pub(crate) fn encode(literal: &Literal, shape: &Shape) -> Result<LiteralProto, ProtoError> {
    let mut own = shape::encode(shape).within("shape")?;
    unpack(&mut own);
    let mut proto = LiteralProto { shape: Some(own), ..Default::default() };
    match (literal, shape) {
        (Literal::Array(array), Shape::Array(shape)) => encode_array(array, shape, &mut proto)?,
        (Literal::Tuple(parts), Shape::Tuple(shapes)) if parts.len() == shapes.len() => {
            let parts: Vec<(&Literal, &Shape)> = parts.iter().zip(shapes).collect();
            proto.tuple_literals =
                each("tuple_literals", &parts, |(part, shape)| encode(part, shape))?;
        }
        (Literal::Token, Shape::Token) => {}
        (Literal::Elided(_), _) => {
            return Err(ProtoError::with_help(
                "the value was left out of the text, as `constant({...})`",
                "print the module with large constants",
            ));
        }
        (Literal::Array(_) | Literal::Tuple(_) | Literal::Token, _) => {
            let message = format!("a value of {} for {shape}", literal.shape());
            return Err(ProtoError::with_help(message, "verify the module before writing it"));
        }
    }
    Ok(proto)
}

/// Removes the packing of a layout: values take whole bytes, and XLA refuses a literal with a
/// packed layout.
fn unpack(shape: &mut ShapeProto) {
    if let Some(layout) = &mut shape.layout {
        layout.element_size_in_bits = 0;
    }
    shape.tuple_shapes.iter_mut().for_each(unpack);
}

fn encode_array(
    array: &ArrayLiteral,
    shape: &ArrayShape,
    proto: &mut LiteralProto,
) -> Result<(), ProtoError> {
    let fits = checked_product(shape.dims()).and_then(|count| usize::try_from(count).ok());
    if array.element_type() != shape.element_type || fits != Some(array.len()) {
        let message = format!("a value of {} for {shape}", array.shape());
        return Err(ProtoError::with_help(message, "verify the module before writing it"));
    }
    match physical_positions(shape, array.len())? {
        None => set_data(array.element_type(), array.data(), proto),
        Some(positions) => {
            let mut logical = vec![0usize; positions.len()];
            for (at, &position) in positions.iter().enumerate() {
                if let Some(slot) = logical.get_mut(position) {
                    *slot = at;
                }
            }
            set_data(array.element_type(), &array.data().gather(logical.into_iter()), proto);
        }
    }
    Ok(())
}

fn set_data(element: ElementType, data: &Data, proto: &mut LiteralProto) {
    match data {
        Data::Pred(values) => proto.preds.clone_from(values),
        Data::S8(values) => {
            let bytes = values.iter().map(|value| value.cast_unsigned()).collect();
            set_bytes(element, unsigned(bytes, element.bits()), proto);
        }
        Data::U8(values) => set_bytes(element, values.clone(), proto),
        Data::S16(values) => proto.s16s = values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Data::S32(values) => proto.s32s.clone_from(values),
        Data::S64(values) => proto.s64s.clone_from(values),
        Data::U16(values) => proto.u16s = values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Data::U32(values) => proto.u32s.clone_from(values),
        Data::U64(values) => proto.u64s.clone_from(values),
        Data::F16(values) => proto.f16s = values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Data::BF16(values) => proto.bf16s = values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Data::F32(values) => proto.f32s.clone_from(values),
        Data::F64(values) => proto.f64s.clone_from(values),
        Data::C64(values) => proto.c64s = values.iter().flat_map(|v| [v.re, v.im]).collect(),
        Data::C128(values) => proto.c128s = values.iter().flat_map(|v| [v.re, v.im]).collect(),
    }
}

/// Sets the field of a type whose elements are bytes.
fn set_bytes(element: ElementType, bytes: Vec<u8>, proto: &mut LiteralProto) {
    let field = match element {
        ElementType::S1 => &mut proto.s1s,
        ElementType::S2 => &mut proto.s2s,
        ElementType::S4 => &mut proto.s4s,
        ElementType::S8 => &mut proto.s8s,
        ElementType::U1 => &mut proto.u1s,
        ElementType::U2 => &mut proto.u2s,
        ElementType::U4 => &mut proto.u4s,
        ElementType::F4E2M1FN => &mut proto.f4e2m1fns,
        ElementType::F6E2M3FN => &mut proto.f6e2m3fns,
        ElementType::F6E3M2FN => &mut proto.f6e3m2fns,
        ElementType::F8E3M4 => &mut proto.f8e3m4s,
        ElementType::F8E4M3 => &mut proto.f8e4m3s,
        ElementType::F8E4M3FN => &mut proto.f8e4m3fns,
        ElementType::F8E4M3B11FNUZ => &mut proto.f8e4m3b11fnuzs,
        ElementType::F8E4M3FNUZ => &mut proto.f8e4m3fnuzs,
        ElementType::F8E5M2 => &mut proto.f8e5m2s,
        ElementType::F8E5M2FNUZ => &mut proto.f8e5m2fnuzs,
        ElementType::F8E8M0FNU => &mut proto.f8e8m0fnus,
        // The others are not stored as bytes; see the table of `Data`.
        _ => &mut proto.u8s,
    };
    *field = bytes;
}

//! Arrays in `.npz` files, as NumPy writes and reads them.
//!
//! Inputs are `in0, in1, ...` and outputs `out0, out1, ...`: the arrays of the
//! entry's parameters or result, tuples flattened in order. Types that NumPy
//! lacks travel as raw bits: `bf16` as 16-bit integers, small floats and
//! integers as one byte per element. What type the bits are, the program says:
//! a file is always read against shapes.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use half::f16;
use npyz::WriterBuilder;
use num_complex::Complex;
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Data, ElementType, Literal, LiteralError, Shape, Verified,
};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::devices::{shape_of_rows, split_rows};
use crate::dynamic::admits_dims;
use crate::value::data_of_bytes;

mod header;

use header::Header;

/// Why arrays could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum NpzError {
    /// The file cannot be read or written, or is not an `.npz`.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// An array is malformed or does not match the program.
    #[error("array `{name}`: {what}")]
    Array {
        /// Its name in the file.
        name: String,
        /// The error.
        what: String,
    },
    /// The file has more or fewer arrays than the program has.
    #[error("{expected} arrays `{prefix}0`, `{prefix}1` ... are wanted, but the file has {found}")]
    Count {
        /// The prefix of their names.
        prefix: String,
        /// Arrays the program has.
        expected: usize,
        /// Arrays the file has.
        found: usize,
    },
}

/// Reads the entry's inputs from a file.
///
/// # Errors
/// Returns an error if the file cannot be read or does not fit the program.
pub fn read_inputs(path: &Path, module: &Verified) -> Result<Vec<Literal>, NpzError> {
    let parameters = module.entry().map(|c| module.computation(c).parameters()).unwrap_or_default();
    let shapes: Vec<&Shape> = parameters.iter().map(|&p| module.shape(p)).collect();
    read(BufReader::new(File::open(path)?), "in", &shapes)
}

/// Reads the result of the entry from a file.
///
/// # Errors
/// Returns an error if the file cannot be read or does not fit the program.
pub fn read_outputs(path: &Path, module: &Verified) -> Result<Literal, NpzError> {
    let root = module.entry().and_then(|c| module.computation(c).root());
    let shapes: Vec<&Shape> = root.iter().map(|&r| module.shape(r)).collect();
    let mut values = read(BufReader::new(File::open(path)?), "out", &shapes)?;
    values.pop().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput).into())
}

/// Reads the arrays whose names begin with `prefix` as values of these shapes.
///
/// # Errors
/// Returns an error if the file cannot be read or does not fit the shapes. Memory is allocated
/// only for data in the file, not for sizes that its headers claim.
pub fn read<R: Read + Seek>(
    reader: R,
    prefix: &str,
    shapes: &[&Shape],
) -> Result<Vec<Literal>, NpzError> {
    let mut archive = open(reader, prefix, shapes)?;
    let mut number = 0;
    let plain = |_: &Header, shape: &ArrayShape| Ok(shape.clone());
    let values = shapes.iter();
    values.map(|shape| read_value(&mut archive, prefix, &mut number, shape, &plain)).collect()
}

/// Like [`read()`], for several devices: each array is the same for all of them, or has an
/// additional first dim with a row for each. Returns the values of each device, or a single
/// list if all have the same.
///
/// # Errors
/// Returns the errors of [`read()`].
pub fn read_rows<R: Read + Seek>(
    reader: R,
    prefix: &str,
    shapes: &[&Shape],
    devices: usize,
) -> Result<Vec<Vec<Literal>>, NpzError> {
    if devices == 1 {
        return Ok(vec![read(reader, prefix, shapes)?]);
    }
    let mut archive = open(reader, prefix, shapes)?;
    let mut number = 0;
    let mut values = Vec::with_capacity(shapes.len());
    for shape in shapes {
        let name = format!("{prefix}{number}");
        let given = of_devices(&mut archive, prefix, &mut number, shape, devices)?;
        let what = |error: LiteralError| NpzError::Array { name, what: error.to_string() };
        let Given { value, rows } = given;
        values.push(if rows { split_rows(&value, devices).map_err(what)? } else { vec![value] });
    }
    let lists = if values.iter().any(|value| value.len() > 1) { devices } else { 1 };
    let of = |device: usize| {
        let mine = values.iter().filter_map(|value| value.get(device).or(value.first()));
        mine.cloned().collect()
    };
    Ok((0..lists).map(of).collect())
}

/// A value, and whether its arrays have a row for each device.
struct Given {
    value: Literal,
    rows: bool,
}

/// Reads a value whose arrays all have a row for each device, or none of them.
fn of_devices<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    prefix: &str,
    number: &mut usize,
    shape: &Shape,
    devices: usize,
) -> Result<Given, NpzError> {
    let seen = Cell::new(None);
    let either = |header: &Header, shape: &ArrayShape| {
        let rows = header.dims.len() > shape.rank();
        if seen.replace(Some(rows)).is_some_and(|before| before != rows) {
            return Err("some arrays of this tuple have a row for each device, others not; \
                        give all of them rows, or none"
                .to_owned());
        }
        let with_rows = shape_of_rows(&Shape::Array(shape.clone()), devices);
        let with_rows = with_rows.as_array().filter(|_| rows).cloned();
        if with_rows.as_ref().is_some_and(|with_rows| *header.dims != *with_rows.dims()) {
            let dims = &header.dims;
            return Err(format!(
                "its dims are {dims:?}, but the program has {shape}; for {devices} devices it may \
                 be that, or have a first dim of {devices} before it"
            ));
        }
        Ok(with_rows.unwrap_or_else(|| shape.clone()))
    };
    let value = read_value(archive, prefix, number, shape, &either)?;
    Ok(Given { value, rows: seen.get() == Some(true) })
}

/// Reads the arrays `prefix0`, `prefix1` ... with their NumPy types; elements without a NumPy
/// type are unsigned integers with the same bits.
///
/// # Errors
/// Returns an error if the file cannot be read, or an array is of a type that HLO lacks.
pub fn read_all<R: Read + Seek>(reader: R, prefix: &str) -> Result<Vec<Literal>, NpzError> {
    let mut archive = ZipArchive::new(reader).map_err(io::Error::from)?;
    let found = count(&archive, prefix);
    let as_it_is = |header: &Header, _: &ArrayShape| {
        let element_type = native(&header.kind)
            .ok_or_else(|| format!("its type is `{}`, which is no type of HLO's", header.kind))?;
        Ok(ArrayShape::new(element_type, header.dims.iter().copied()))
    };
    let any = Shape::array(ElementType::Pred, []);
    let mut number = 0;
    (0..found).map(|_| read_value(&mut archive, prefix, &mut number, &any, &as_it_is)).collect()
}

/// Returns the type of HLO whose name NumPy uses.
fn native(kind: &str) -> Option<ElementType> {
    use ElementType::*;
    let all = [Pred, S8, S16, S32, S64, U8, U16, U32, U64, F16, F32, F64, C64, C128];
    let bits = match kind {
        "V1" => "u1",
        "V2" => "u2",
        kind => kind,
    };
    all.into_iter().find(|&element_type| kinds(element_type).contains(&bits))
}

/// Returns how many arrays have the prefix and a number as name.
fn count<R: Read + Seek>(archive: &ZipArchive<R>, prefix: &str) -> usize {
    let is_ours = |file: &str| {
        let name = file.strip_suffix(".npy").unwrap_or_default();
        let number = name.strip_prefix(prefix).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    let names = archive.file_names().filter_map(Result::ok);
    names.filter(|name| is_ours(name)).count()
}

/// Opens a file that has as many arrays as the shapes.
fn open<R: Read + Seek>(
    reader: R,
    prefix: &str,
    shapes: &[&Shape],
) -> Result<ZipArchive<R>, NpzError> {
    let archive = ZipArchive::new(reader).map_err(io::Error::from)?;
    let leaves = shapes.iter().flat_map(|shape| shape.leaves());
    let expected = leaves.filter(|leaf| leaf.as_array().is_some()).count();
    let found = count(&archive, prefix);
    if found != expected {
        return Err(NpzError::Count { prefix: prefix.to_owned(), expected, found });
    }
    Ok(archive)
}

/// Selects the shape to read, from the header of an array and the program's shape.
type Wanted<'a> = dyn Fn(&Header, &ArrayShape) -> Result<ArrayShape, String> + 'a;

fn read_value<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    prefix: &str,
    number: &mut usize,
    shape: &Shape,
    wanted: &Wanted<'_>,
) -> Result<Literal, NpzError> {
    match shape {
        Shape::Array(array) => {
            let name = format!("{prefix}{number}");
            *number += 1;
            let read = read_array(archive, &name, array, wanted);
            read.map(Literal::Array).map_err(|error| match error {
                ReadError::Io(error) if error.kind() != io::ErrorKind::InvalidData => {
                    NpzError::Io(error)
                }
                ReadError::Io(error) => NpzError::Array { name, what: error.to_string() },
                ReadError::Array(what) => NpzError::Array { name, what },
            })
        }
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|e| read_value(archive, prefix, number, e, wanted));
            elements.collect::<Result<_, _>>().map(Literal::Tuple)
        }
        Shape::Token => Ok(Literal::Token),
        Shape::Buffer(_) | Shape::Opaque => Err(NpzError::Array {
            name: format!("{prefix}{number}"),
            what: format!("a value of shape {shape} is not an array"),
        }),
    }
}

/// Like [`NpzError`], before the array's name is known.
enum ReadError {
    Io(io::Error),
    Array(String),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn read_array<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    name: &str,
    shape: &ArrayShape,
    wanted: &Wanted<'_>,
) -> Result<ArrayLiteral, ReadError> {
    let entry = archive.by_name(&format!("{name}.npy"));
    let mut entry = entry.map_err(|error| ReadError::Array(error.to_string()))?;
    let header = Header::read(&mut entry)?;
    let shape = wanted(&header, shape).map_err(ReadError::Array)?;
    let wrong = |what: String| Err(ReadError::Array(what));
    if !admits_dims(&shape, &header.dims) {
        return wrong(format!("its dims are {:?}, but the program has {shape}", header.dims));
    }
    let element_type = shape.element_type;
    let shape = ArrayShape::new(element_type, header.dims.iter().copied());
    if !kinds(element_type).contains(&&*header.kind) {
        let kind = &header.kind;
        return wrong(format!("its type is `{kind}`, but the program has {element_type}"));
    }
    let Some(expected) = shape.num_bytes().and_then(|bytes| u64::try_from(bytes).ok()) else {
        return wrong(format!("{shape} is too large"));
    };
    let mut bytes = Vec::new();
    entry.take(expected.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()) != Ok(expected) {
        return wrong(format!("its elements take {} bytes, not {expected}", bytes.len()));
    }
    if header.big_endian {
        swap_words(&mut bytes, element_type);
    }
    let mut data = data_of_bytes(&bytes, element_type);
    if header.fortran_order {
        data = data.gather(fortran_places(shape.dims()).into_iter());
    }
    if !in_range(&data, element_type) {
        return wrong(format!("an element is out of the range of {element_type}"));
    }
    let array = ArrayLiteral::new(element_type, shape.dims().iter().copied(), data);
    array.map_err(|error| ReadError::Array(error.to_string()))
}

/// Returns the ways in which NumPy may write a type, without its byte order; the first is ours.
fn kinds(element_type: ElementType) -> &'static [&'static str] {
    match element_type {
        ElementType::Pred => &["b1"],
        ElementType::S8 => &["i1"],
        ElementType::S16 => &["i2"],
        ElementType::S32 => &["i4"],
        ElementType::S64 => &["i8"],
        ElementType::U8 => &["u1"],
        ElementType::U16 => &["u2"],
        ElementType::U32 => &["u4"],
        ElementType::U64 => &["u8"],
        ElementType::F16 => &["f2"],
        // NumPy writes types that it does not know as bytes.
        ElementType::BF16 => &["u2", "V2"],
        ElementType::F32 => &["f4"],
        ElementType::F64 => &["f8"],
        ElementType::C64 => &["c8"],
        ElementType::C128 => &["c16"],
        ElementType::S1 | ElementType::S2 | ElementType::S4 => &["i1", "V1"],
        ElementType::U1
        | ElementType::U2
        | ElementType::U4
        | ElementType::F4E2M1FN
        | ElementType::F6E2M3FN
        | ElementType::F6E3M2FN
        | ElementType::F8E3M4
        | ElementType::F8E4M3
        | ElementType::F8E4M3FN
        | ElementType::F8E4M3B11FNUZ
        | ElementType::F8E4M3FNUZ
        | ElementType::F8E5M2
        | ElementType::F8E5M2FNUZ
        | ElementType::F8E8M0FNU => &["u1", "V1"],
    }
}

fn swap_words(bytes: &mut [u8], element_type: ElementType) {
    let part = element_type.complex_part().unwrap_or(element_type);
    for word in bytes.chunks_mut(part.bytes() as usize) {
        word.reverse();
    }
}

/// Returns the positions of a row-major array's elements in a column-major one.
fn fortran_places(dims: &[i64]) -> Vec<usize> {
    // Beside a 0, sizes may be too large to multiply.
    if dims.contains(&0) {
        return Vec::new();
    }
    let mut places = vec![0];
    let mut stride = 1;
    let mut strides = Vec::new();
    for &size in dims {
        strides.push(stride);
        stride *= usize::try_from(size).unwrap_or(0);
    }
    for (&size, stride) in dims.iter().zip(strides) {
        let size = usize::try_from(size).unwrap_or(0);
        places = places.iter().flat_map(|at| (0..size).map(move |i| at + i * stride)).collect();
    }
    places
}

/// Checks whether every element of a type narrower than its storage fits.
fn in_range(data: &Data, element_type: ElementType) -> bool {
    let bits = element_type.bits();
    match data {
        Data::S8(values) if bits < 8 => {
            let limit = 1i8 << (bits - 1);
            values.iter().all(|v| (-limit..limit).contains(v))
        }
        Data::U8(values) if bits < 8 => values.iter().all(|&v| u32::from(v) < 1 << bits),
        _ => true,
    }
}

/// Writes groups of values: each group's arrays are named by its prefix and
/// numbered from 0, tuples flattened in order.
///
/// # Errors
/// Returns an error if the file cannot be written, or a constant's value is unknown.
pub fn write<W: Write + Seek>(writer: W, groups: &[(&str, &[Literal])]) -> Result<(), NpzError> {
    let mut archive = ZipWriter::new(writer);
    for (prefix, values) in groups {
        let arrays = values.iter().flat_map(Literal::leaves);
        let arrays = arrays.filter(|leaf| !matches!(leaf, Literal::Token));
        for (number, leaf) in arrays.enumerate() {
            let name = format!("{prefix}{number}");
            let Literal::Array(array) = leaf else {
                let what = "its value was left out (`{...}`)".to_owned();
                return Err(NpzError::Array { name, what });
            };
            write_array(&mut archive, &name, array)?;
        }
    }
    archive.finish().map_err(io::Error::from)?.flush()?;
    Ok(())
}

/// Writes groups of values to a file; see [`write()`].
///
/// # Errors
/// Returns the errors of [`write()`].
pub fn write_file(path: &Path, groups: &[(&str, &[Literal])]) -> Result<(), NpzError> {
    write(BufWriter::new(File::create(path)?), groups)
}

fn write_array<W: Write + Seek>(
    archive: &mut ZipWriter<W>,
    name: &str,
    array: &ArrayLiteral,
) -> io::Result<()> {
    let dims: Vec<u64> = array.dims().iter().map(|&d| d.cast_unsigned()).collect();
    // The options match NumPy's `savez`; past 4 GiB an entry needs the longer form.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(array.shape().num_bytes().is_none_or(|bytes| bytes >= 1 << 31));
    archive.start_file(format!("{name}.npy"), options).map_err(io::Error::from)?;
    macro_rules! put {
        ($type:ty, $values:expr) => {{
            let builder = npyz::WriteOptions::<$type>::new().default_dtype();
            let mut writer = builder.shape(&dims).writer(&mut *archive).begin_nd()?;
            writer.extend($values)?;
            writer.finish()
        }};
    }
    match array.data() {
        Data::Pred(v) => put!(bool, v.iter().copied()),
        Data::S8(v) => put!(i8, v.iter().copied()),
        Data::S16(v) => put!(i16, v.iter().copied()),
        Data::S32(v) => put!(i32, v.iter().copied()),
        Data::S64(v) => put!(i64, v.iter().copied()),
        Data::U8(v) => put!(u8, v.iter().copied()),
        Data::U16(v) => put!(u16, v.iter().copied()),
        Data::U32(v) => put!(u32, v.iter().copied()),
        Data::U64(v) => put!(u64, v.iter().copied()),
        Data::F16(v) => put!(f16, v.iter().copied()),
        Data::BF16(v) => put!(u16, v.iter().map(|x| x.to_bits())),
        Data::F32(v) => put!(f32, v.iter().copied()),
        Data::F64(v) => put!(f64, v.iter().copied()),
        Data::C64(v) => put!(Complex<f32>, v.iter().copied()),
        Data::C128(v) => put!(Complex<f64>, v.iter().copied()),
    }
}

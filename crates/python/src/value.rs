//! Arrays of elements on their way from and to NumPy. `python/tilewright/_values.py` has the other
//! half: which dtype an element type is.

use std::ffi::{c_int, c_void};

use half::{bf16, f16};
use num_complex::Complex;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tilewright::ir::element::NumberClass;
use tilewright::ir::{ArrayLiteral, Data, ElementType, Literal as Value};

use crate::error::usage;

/// A value that the library reads: an array, a tuple or a token. It owns a copy of what Python gave.
///
/// Rust code may borrow memory only while nothing writes to it. An array of NumPy does not promise
/// that: even if it is read-only, another view can write to its memory, on a thread that holds no
/// GIL, and the evaluator runs without the GIL. So a borrow of an array would be unsound.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Literal(pub(crate) Value);

#[pymethods]
impl Literal {
    /// An array of a type from its words in row-major order, which are copied: a buffer of unsigned
    /// integers as wide as an element, or as each half of a complex one.
    #[staticmethod]
    fn array(element_type: &str, dims: Vec<i64>, words: &Bound<'_, PyAny>) -> PyResult<Self> {
        let element_type = named(element_type)?;
        let data = read(element_type, words)?;
        ArrayLiteral::new(element_type, dims, data).map(|array| Self(array.into())).map_err(usage)
    }

    /// A tuple of values.
    #[staticmethod]
    fn tuple(elements: Vec<PyRef<'_, Self>>) -> Self {
        Self(Value::Tuple(elements.iter().map(|element| element.0.clone()).collect()))
    }

    /// A token.
    #[staticmethod]
    fn token() -> Self {
        Self(Value::Token)
    }
}

/// Returns the element type of a name.
pub(crate) fn named(name: &str) -> PyResult<ElementType> {
    let unknown = || {
        let names: Vec<&str> = ElementType::ALL.iter().map(|each| each.name()).collect();
        usage(format!("there is no element type `{name}`; there are: {}", names.join(", ")))
    };
    ElementType::from_name(name).ok_or_else(unknown)
}

/// A computed array, which hands its memory to NumPy by the buffer protocol.
#[pyclass(module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Buffer {
    data: Data,
    element_type: ElementType,
    dims: Vec<i64>,
}

#[pymethods]
impl Buffer {
    /// The element type, as `f32`.
    #[getter]
    fn element_type(&self) -> &'static str {
        self.element_type.name()
    }

    /// The size of each dim.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.dims)
    }

    /// Fills a view of the elements that may be written.
    ///
    /// # Safety
    /// Python calls it with a `view` to fill, and with the flags of a request.
    unsafe fn __getbuffer__(
        mut slf: PyRefMut<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let py = slf.py();
        let (pointer, len) = memory(&mut slf.data);
        let len = ffi::Py_ssize_t::try_from(len)?;
        let owner = slf.as_ptr();
        // SAFETY: `view` is from Python, and refused if it is null. The `len` bytes at `pointer`
        // belong to `owner`, which every view keeps alive, on any thread. Until `owner` is
        // dropped, Rust does not read, write, move or free them: `memory` alone uses `data` once
        // it is here, and takes no reference to an element. So views may write them without the
        // GIL, and even bytes that are no `bool`; to drop the `Vec` reads none of them.
        match unsafe { ffi::PyBuffer_FillInfo(view, owner, pointer, len, 0, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// Where the elements lie, and how many bytes they take. A view of them may be in use, so this takes
/// no reference to them.
fn memory(data: &mut Data) -> (*mut c_void, usize) {
    fn of<T>(values: &mut Vec<T>) -> (*mut c_void, usize) {
        (values.as_mut_ptr().cast(), values.len().saturating_mul(size_of::<T>()))
    }
    match data {
        Data::Pred(values) => of(values),
        Data::S8(values) => of(values),
        Data::S16(values) => of(values),
        Data::S32(values) => of(values),
        Data::S64(values) => of(values),
        Data::U8(values) => of(values),
        Data::U16(values) => of(values),
        Data::U32(values) => of(values),
        Data::U64(values) => of(values),
        Data::F16(values) => of(values),
        Data::BF16(values) => of(values),
        Data::F32(values) => of(values),
        Data::F64(values) => of(values),
        Data::C64(values) => of(values),
        Data::C128(values) => of(values),
    }
}

/// Reads elements of a type from a buffer of words.
fn read(element_type: ElementType, from: &Bound<'_, PyAny>) -> PyResult<Data> {
    let unused = 8_u32.saturating_sub(element_type.bits());
    let extended = |byte: u8| (byte << unused).cast_signed() >> unused;
    Ok(match Data::zeros(element_type, 0) {
        Data::Pred(_) => Data::Pred(words(from, |byte: u8| byte != 0)?),
        Data::S8(_) => Data::S8(words(from, extended)?),
        Data::U8(_) => Data::U8(words(from, |byte: u8| byte & (u8::MAX >> unused))?),
        Data::S16(_) => Data::S16(words(from, u16::cast_signed)?),
        Data::S32(_) => Data::S32(words(from, u32::cast_signed)?),
        Data::S64(_) => Data::S64(words(from, u64::cast_signed)?),
        Data::U16(_) => Data::U16(words(from, u16::into)?),
        Data::U32(_) => Data::U32(words(from, u32::into)?),
        Data::U64(_) => Data::U64(words(from, u64::into)?),
        Data::F16(_) => Data::F16(words(from, f16::from_bits)?),
        Data::BF16(_) => Data::BF16(words(from, bf16::from_bits)?),
        Data::F32(_) => Data::F32(words(from, f32::from_bits)?),
        Data::F64(_) => Data::F64(words(from, f64::from_bits)?),
        Data::C64(_) => Data::C64(pairs(from, f32::from_bits)?),
        Data::C128(_) => Data::C128(pairs(from, f64::from_bits)?),
    })
}

/// A buffer of words in the byte order of this machine.
fn native<W: Element>(from: &Bound<'_, PyAny>) -> PyResult<PyBuffer<W>> {
    let buffer = PyBuffer::<W>::get(from)?;
    // PyO3 takes words whose bytes are in network order for those of this machine.
    let swapped: &[u8] = if cfg!(target_endian = "little") { b">!" } else { b"<" };
    if buffer.format().to_bytes().first().is_some_and(|order| swapped.contains(order)) {
        return Err(usage("the words of a buffer must have the byte order of this machine"));
    }
    Ok(buffer)
}

/// Copies words and turns each into an element, in place if the two are as wide.
fn words<W: Element, T>(from: &Bound<'_, PyAny>, element: impl FnMut(W) -> T) -> PyResult<Vec<T>> {
    let words = native(from)?.to_vec(from.py())?;
    Ok(words.into_iter().map(element).collect())
}

/// Copies words and turns each two into a complex number, in place.
fn pairs<W: Element + Default, T>(
    from: &Bound<'_, PyAny>,
    part: impl Fn(W) -> T,
) -> PyResult<Vec<Complex<T>>> {
    let buffer = native(from)?;
    let mut words = vec![[W::default(); 2]; buffer.item_count() / 2];
    buffer.copy_to_slice(from.py(), words.as_flattened_mut())?;
    Ok(words.into_iter().map(|[re, im]| Complex::new(part(re), part(im))).collect())
}

/// Hands a value to Python: an array as a [`Buffer`], a tuple as a list, a token as `None`. The
/// elements are copied only if something else, such as a constant of a module, shares them.
pub(crate) fn handed_over(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Array(array) => {
            let (element_type, dims) = (array.element_type(), array.dims().to_vec());
            let mut data = array.into_data();
            if element_type.class() == NumberClass::Signed && element_type.bits() < 8 {
                // NumPy's narrow types leave the bits above their own at zero.
                if let Data::S8(values) = &mut data {
                    let mask = u8::MAX >> (8 - element_type.bits());
                    values.iter_mut().for_each(|v| *v = (v.cast_unsigned() & mask).cast_signed());
                }
            }
            Ok(Py::new(py, Buffer { data, element_type, dims })?.into_any())
        }
        Value::Tuple(elements) => {
            let elements = elements.into_iter().map(|element| handed_over(py, element));
            Ok(PyList::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_any().unbind())
        }
        Value::Token => Ok(py.None()),
        Value::Elided(shape) => {
            Err(usage(format!("the value of {shape} was left out of the module's text")))
        }
    }
}

/// Makes a value of what Python calls an array, a list or a number. `element_type` is the one
/// wanted; without it, that of the array.
pub(crate) fn taken(value: &Bound<'_, PyAny>, element_type: Option<&str>) -> PyResult<Value> {
    let values = value.py().import("tilewright._values")?;
    let literal = values.getattr("literal")?.call1((value, element_type))?;
    Ok(literal.cast::<Literal>()?.get().0.clone())
}

/// A value as NumPy's arrays, tuples of them, and `None` for tokens.
pub(crate) fn shown(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    let values = py.import("tilewright._values")?;
    values.getattr("value")?.call1((handed_over(py, value)?,))
}

//! The argument, the result and the attributes of a call, checked.

use std::ffi::c_void;
use std::marker::PhantomData;

use tilewright::ir::{NativeCall, NativeFold, NativeProgram};

use super::Refusal;
use super::abi::{self, Api, Attributes, CallFrame, Context, Extension, Values, has};

/// A frame whose fields up to the attributes are there.
pub(crate) struct Frame<'a> {
    frame: *mut CallFrame,
    lifetime: PhantomData<&'a CallFrame>,
}

impl<'a> Frame<'a> {
    /// # Safety
    /// `frame` must be readable up to its attributes while the `Frame` lives, and as the header
    /// says.
    pub(crate) unsafe fn new(frame: *mut CallFrame) -> Self {
        Self { frame, lifetime: PhantomData }
    }

    fn get(&self) -> &'a CallFrame {
        // SAFETY: `new` asks for it.
        unsafe { &*self.frame }
    }

    /// The extension by which XLA asks for the metadata of the handler, if it does.
    pub(crate) fn metadata(&self) -> Option<*mut Extension> {
        let extension = self.get().extension_start;
        // SAFETY: an extension is null, or has at least the fields of its base.
        let kind = unsafe { extension.as_ref() }?.kind;
        (kind == abi::METADATA).then_some(extension)
    }

    /// XLA's functions, if they are those of a version that has errors and pools.
    pub(crate) fn api(&self) -> Option<&'a Api> {
        let api = self.get().api;
        // SAFETY: XLA's functions are null, or begin with their size.
        let size = unsafe { api.cast::<usize>().as_ref() }?;
        // SAFETY: XLA keeps its functions as long as it calls handlers.
        if has(*size, size_of::<Api>()) { unsafe { api.as_ref() } } else { None }
    }

    /// The frame, if it is one of an execution.
    fn executing(&self) -> Result<&'a CallFrame, Refusal> {
        let frame = self.get();
        if frame.stage != abi::EXECUTE {
            let stage = frame.stage;
            return Err(Refusal::invalid(format!("called in stage {stage}, and not to execute")));
        }
        match self.api() {
            Some(api) if api.version.major != abi::MAJOR => {
                let major = api.version.major;
                Err(Refusal::invalid(format!("version {major} of XLA's interface is unknown")))
            }
            _ => Ok(frame),
        }
    }

    /// The state of the execution, for XLA's functions.
    pub(crate) fn context(&self) -> *mut Context {
        self.get().context
    }
}

/// An array in memory, row major: `elements` elements at `data`.
pub(crate) struct Buffer {
    pub(crate) data_type: i32,
    pub(crate) dims: Vec<usize>,
    elements: usize,
    data: *mut c_void,
}

/// A call of the handler.
pub(crate) struct Call<'a> {
    /// The array that is reduced.
    pub(crate) array: Buffer,
    /// Where the results go.
    pub(crate) result: Buffer,
    /// The computation.
    pub(crate) fold: NativeFold,
    /// The reduced axes, each at least 0, below the rank and given once.
    pub(crate) axes: &'a [i64],
}

impl<'a> Call<'a> {
    /// Reads a call.
    ///
    /// # Errors
    /// If the stage is another one than the execution, there is not one buffer and one result, or
    /// an attribute is missing or wrong. Buffers and their types are checked when their elements
    /// are asked for.
    pub(crate) fn read(from: &Frame<'a>) -> Result<Self, Refusal> {
        let frame = from.executing()?;
        let array = only(&frame.args, "argument")?;
        let result = only(&frame.rets, "result")?;
        let (fold, axes) = fold_and_axes(&frame.attrs)?;
        let mut is_reduced = vec![false; array.dims.len()];
        for &axis in axes {
            let slot = usize::try_from(axis).ok().and_then(|axis| is_reduced.get_mut(axis));
            let slot = slot.ok_or_else(|| {
                let rank = array.dims.len();
                Refusal::invalid(format!("axis {axis} is out of range for {rank} dims"))
            })?;
            if std::mem::replace(slot, true) {
                return Err(Refusal::invalid(format!("axis {axis} is given more than once")));
            }
        }
        let kept = array.dims.iter().zip(&is_reduced).filter(|&(_, &is_reduced)| !is_reduced);
        if !kept.map(|(dim, _)| dim).eq(&result.dims) {
            let (from, to) = (&array.dims, &result.dims);
            return Err(Refusal::invalid(format!(
                "the result has dims {to:?}, which are not {from:?} without the axes {axes:?}"
            )));
        }
        if !fold.tells_places() && result.data_type != array.data_type {
            let (given, wanted) = (result.data_type, array.data_type);
            return Err(Refusal::invalid(format!(
                "the result has elements of type {given} of XLA, not {wanted}"
            )));
        }
        let call = Self { array, result, fold, axes };
        if call.array.overlaps(&call.result)? {
            return Err(Refusal::invalid("the result lies over the argument"));
        }
        Ok(call)
    }

    /// The elements of the array.
    ///
    /// # Errors
    /// If they have another size, or lie nowhere or off their boundaries.
    pub(crate) fn array<T: Element>(&self) -> Result<&'a [T], Refusal> {
        // SAFETY: nobody writes an argument during the call, and the result lies elsewhere.
        unsafe { self.array.elements("argument") }
    }

    /// The place of the results.
    ///
    /// # Errors
    /// As for the array.
    pub(crate) fn result<T: Element>(&mut self) -> Result<&'a mut [T], Refusal> {
        // SAFETY: XLA hands a result over to one call alone, and `self` is borrowed alone.
        unsafe { self.result.elements_mut("result") }
    }
}

/// A call of a program.
pub(crate) struct ProgramCall<'a> {
    pub(crate) arguments: Vec<Buffer>,
    /// Where the results go: each apart from the others and from the arguments.
    pub(crate) results: Vec<Buffer>,
    /// The text of the program.
    pub(crate) text: &'a str,
}

impl<'a> ProgramCall<'a> {
    /// Reads a call.
    ///
    /// # Errors
    /// If the stage is another one than the execution, something is no buffer, results lie over other
    /// buffers, or the attribute is missing or wrong.
    pub(crate) fn read(from: &Frame<'a>) -> Result<Self, Refusal> {
        let frame = from.executing()?;
        let arguments = buffers(&frame.args, "argument")?;
        let results = buffers(&frame.rets, "result")?;
        for (number, result) in results.iter().enumerate() {
            for other in arguments.iter().chain(&results[..number]) {
                if result.overlaps(other)? {
                    return Err(Refusal::invalid("a result lies over another buffer"));
                }
            }
        }
        let mut found = None;
        for (name, kind, value) in attributes(&frame.attrs)? {
            match (name, kind) {
                (NativeProgram::PROGRAM, abi::STRING) => {
                    // SAFETY: the value of a string is null, or a span of bytes.
                    found = Some(unsafe { text(value.cast()) }?);
                }
                _ => return Err(unknown_attribute(name, kind)),
            }
        }
        let text = found.ok_or_else(|| missing(NativeProgram::PROGRAM))?;
        Ok(Self { arguments, results, text })
    }
}

/// A type of which all bits are values.
///
/// # Safety
/// It must have no bits that are no value, and `DATA_TYPE` must be XLA's type of the same size.
pub(crate) unsafe trait Element: Copy {
    /// XLA's type.
    const DATA_TYPE: i32;
}

macro_rules! elements {
    ($($type:ty, $name:ident;)*) => {
        $(
            // SAFETY: numbers have no bits that are no number, and are as long as XLA's.
            unsafe impl Element for $type {
                const DATA_TYPE: i32 = abi::data_type::$name;
            }
        )*
        /// The bytes of an element.
        ///
        /// # Errors
        /// If it is of no type of arrays or results.
        fn size_of_type(data_type: i32) -> Result<usize, Refusal> {
            match data_type {
                abi::data_type::PRED => Ok(1),
                $(abi::data_type::$name => Ok(size_of::<$type>()),)*
                _ => Err(unknown_type(data_type)),
            }
        }
    };
}

elements! {
    i32, S32; i64, S64; u8, U8;
    half::f16, F16; half::bf16, BF16; f32, F32; f64, F64;
}

/// The error for a type that is not reduced.
pub(crate) fn unknown_type(data_type: i32) -> Refusal {
    Refusal::invalid(format!("elements of type {data_type} of XLA are not reduced"))
}

impl Buffer {
    /// The elements.
    ///
    /// # Errors
    /// If they have another size, or lie nowhere or off their boundaries.
    ///
    /// # Safety
    /// Nobody may write them meanwhile.
    pub(crate) unsafe fn elements<'a, T: Element>(&self, what: &str) -> Result<&'a [T], Refusal> {
        let start = self.start::<T>(what)?;
        // SAFETY: XLA's buffer has the elements of its dims, all bits of which are values of `T`,
        // at an aligned address; the caller promises the rest.
        Ok(unsafe { std::slice::from_raw_parts(start, self.elements) })
    }

    /// The elements, to write them.
    ///
    /// # Errors
    /// As for [`Buffer::elements`].
    ///
    /// # Safety
    /// Nobody else may use them meanwhile.
    pub(crate) unsafe fn elements_mut<'a, T: Element>(
        &mut self,
        what: &str,
    ) -> Result<&'a mut [T], Refusal> {
        let start = self.start::<T>(what)?;
        // SAFETY: as above; what the buffer holds is some value of `T`.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, self.elements) })
    }

    /// Checks whether two buffers share bytes.
    fn overlaps(&self, other: &Self) -> Result<bool, Refusal> {
        let ends = |buffer: &Self| -> Result<(usize, usize), Refusal> {
            let start = buffer.data.addr();
            let bytes = size_of_type(buffer.data_type)?.checked_mul(buffer.elements);
            let end = bytes.and_then(|bytes| start.checked_add(bytes));
            Ok((start, end.ok_or_else(|| Refusal::invalid("a buffer is too large"))?))
        };
        let ((a, a_end), (b, b_end)) = (ends(self)?, ends(other)?);
        Ok(a.max(b) < a_end.min(b_end))
    }

    /// Where its elements begin; dangling if there are none.
    fn start<T: Element>(&self, what: &str) -> Result<*mut T, Refusal> {
        // Truth values are read as bytes.
        let is_byte = T::DATA_TYPE == abi::data_type::U8;
        let is_truth = is_byte && self.data_type == abi::data_type::PRED;
        if self.data_type != T::DATA_TYPE && !is_truth {
            let (given, wanted) = (self.data_type, T::DATA_TYPE);
            return Err(Refusal::invalid(format!(
                "the {what} has elements of type {given} of XLA, not {wanted}"
            )));
        }
        if self.elements == 0 {
            return Ok(std::ptr::dangling_mut());
        }
        let data = self.data.cast::<T>();
        if data.is_null() || !data.is_aligned() {
            let align = align_of::<T>();
            return Err(Refusal::invalid(format!(
                "the {what} is at {data:p}, which is no multiple of {align} bytes"
            )));
        }
        Ok(data)
    }
}

/// The only value of several.
fn only(values: &Values, what: &str) -> Result<Buffer, Refusal> {
    let mut buffers = buffers(values, what)?;
    match (buffers.pop(), buffers.is_empty()) {
        (Some(buffer), true) => Ok(buffer),
        _ => {
            let size = values.size;
            Err(Refusal::invalid(format!("there are {size} {what}s, and not one")))
        }
    }
}

/// The values, which are buffers.
fn buffers(values: &Values, what: &str) -> Result<Vec<Buffer>, Refusal> {
    // SAFETY: `values` is a part of the frame, so its arrays are as long as it says.
    let (types, all) = unsafe {
        (slice(values.types, values.size, what)?, slice(values.values, values.size, what)?)
    };
    let all = types.iter().zip(all);
    all.map(|(&kind, &value)| {
        if kind != abi::BUFFER {
            return Err(Refusal::invalid(format!("the {what} is no buffer")));
        }
        // SAFETY: what XLA says to be a buffer is null, or begins with its size.
        unsafe { buffer(value.cast(), what) }
    })
    .collect()
}

/// Reads a buffer.
///
/// # Safety
/// `value` must be null, or begin with its size.
unsafe fn buffer(value: *const abi::Buffer, what: &str) -> Result<Buffer, Refusal> {
    // SAFETY: the caller says so.
    let size = unsafe { value.cast::<usize>().as_ref() };
    if !size.is_some_and(|&size| has(size, size_of::<abi::Buffer>())) {
        return Err(Refusal::invalid(format!("the {what} is no buffer of a known version")));
    }
    // SAFETY: it has the size of a buffer.
    let buffer = unsafe { &*value };
    let too_large =
        || Refusal::invalid(format!("the dims of the {what} are negative or too large"));
    let (mut dims, mut bytes) = (Vec::new(), size_of_type(buffer.data_type)?);
    // SAFETY: a buffer has as many dims as its rank says.
    for &dim in unsafe { slice(buffer.dims, buffer.rank, "dim") }? {
        let dim = usize::try_from(dim).map_err(|_| too_large())?;
        bytes = bytes.checked_mul(dim.max(1)).ok_or_else(too_large)?;
        dims.push(dim);
    }
    isize::try_from(bytes).map_err(|_| too_large())?;
    // The product fits: dims of 0 were counted as 1 in it.
    let elements = dims.iter().product();
    Ok(Buffer { data_type: buffer.data_type, dims, elements, data: buffer.data })
}

/// The name, the kind and the value of each attribute.
fn attributes<'a>(attrs: &Attributes) -> Result<Vec<(&'a str, i32, *const c_void)>, Refusal> {
    // SAFETY: `attrs` is a part of the frame, so its arrays are as long as it says.
    let (types, names, values) = unsafe {
        (
            slice(attrs.types, attrs.size, "attribute")?,
            slice(attrs.names, attrs.size, "attribute")?,
            slice(attrs.values, attrs.size, "attribute")?,
        )
    };
    let all = types.iter().zip(names).zip(values);
    // SAFETY: a name is null, or a span of bytes as the header says.
    all.map(|((&kind, &name), &value)| Ok((unsafe { text(name) }?, kind, value))).collect()
}

/// The attributes `fold` and `axes`.
fn fold_and_axes<'a>(attrs: &Attributes) -> Result<(NativeFold, &'a [i64]), Refusal> {
    let (mut fold, mut axes) = (None, None);
    for (name, kind, value) in attributes(attrs)? {
        match (name, kind) {
            (NativeCall::FOLD, abi::STRING) => {
                // SAFETY: the value of a string is null, or a span of bytes.
                let name = unsafe { text(value.cast()) }?;
                fold = Some(fold_of(name)?);
            }
            // SAFETY: the value of an array is null, or an `Array`.
            (NativeCall::AXES, abi::ARRAY) => axes = Some(unsafe { integers(value.cast()) }?),
            _ => return Err(unknown_attribute(name, kind)),
        }
    }
    Ok((
        fold.ok_or_else(|| missing(NativeCall::FOLD))?,
        axes.ok_or_else(|| missing(NativeCall::AXES))?,
    ))
}

fn unknown_attribute(name: &str, kind: i32) -> Refusal {
    Refusal::invalid(format!("the attribute `{name}` of kind {kind} is unknown"))
}

fn missing(name: &str) -> Refusal {
    Refusal::invalid(format!("the attribute `{name}` is missing"))
}

fn fold_of(name: &str) -> Result<NativeFold, Refusal> {
    NativeFold::of_name(name).ok_or_else(|| Refusal::invalid(format!("`{name}` is no fold")))
}

/// # Safety
/// `span` must be null, or a span whose bytes live as long as `'a`.
unsafe fn text<'a>(span: *const abi::ByteSpan) -> Result<&'a str, Refusal> {
    // SAFETY: the caller says so.
    let span = unsafe { span.as_ref() };
    let span = span.ok_or_else(|| Refusal::invalid("an attribute is null"))?;
    let len = i64::try_from(span.len).unwrap_or(-1);
    // SAFETY: a span has as many bytes as it says.
    let bytes = unsafe { slice(span.start, len, "byte") }?;
    std::str::from_utf8(bytes).map_err(|_| Refusal::invalid("an attribute is no text"))
}

/// # Safety
/// `array` must be null, or an array whose elements live as long as `'a`.
unsafe fn integers<'a>(array: *const abi::Array) -> Result<&'a [i64], Refusal> {
    // SAFETY: the caller says so.
    let array = unsafe { array.as_ref() };
    match array {
        Some(array) if array.data_type == abi::data_type::S64 => {
            let len = i64::try_from(array.size).unwrap_or(-1);
            // SAFETY: an array of that type has as many integers as it says.
            unsafe { slice(array.data.cast(), len, "axis") }
        }
        _ => {
            Err(Refusal::invalid(format!("`{}` is no array of 64-bit integers", NativeCall::AXES)))
        }
    }
}

/// The elements of an array of the frame, whose length XLA states.
///
/// # Safety
/// `start` must be null, or point to `len` elements that live as long as `'a`, if it is aligned.
unsafe fn slice<'a, T>(start: *const T, len: i64, what: &str) -> Result<&'a [T], Refusal> {
    let wrong = || Refusal::invalid(format!("the number of {what}s is {len}"));
    let count = usize::try_from(len).map_err(|_| wrong())?;
    if count == 0 {
        return Ok(&[]);
    }
    let bytes = count.checked_mul(size_of::<T>()).and_then(|bytes| isize::try_from(bytes).ok());
    if bytes.is_none() || start.is_null() || !start.is_aligned() {
        return Err(wrong());
    }
    // SAFETY: the caller says so; the bytes fit in memory.
    Ok(unsafe { std::slice::from_raw_parts(start, count) })
}

//! Values while they are computed: shared, never copied to be passed on.

use std::rc::Rc;
use std::sync::Arc;

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::shape::checked_product;
use tilewright_ir::{ArrayLiteral, Data, Dims, ElementType, Literal, LiteralError, Native};

use crate::error::{Fault, Outcome, WRONG_STORAGE};
use crate::limits::{Charge, Ledger};

/// Calls the same code for whichever storage a [`Data`] has:
/// `with_data!(data, values => expr)` binds `values` to the typed vector.
macro_rules! with_data {
    ($data:expr, $values:ident => $body:expr) => {
        $crate::value::with_data!(@ $data, $values => $body, [Pred S8 S16 S32 S64 U8 U16 U32 U64 F16 BF16 F32 F64 C64 C128])
    };
    (@ $data:expr, $values:ident => $body:expr, [$($name:ident)*]) => {
        match $data { $(tilewright_ir::Data::$name($values) => $body,)* }
    };
}
pub(crate) use with_data;

/// Like [`with_data`], for code that yields a vector of the same type: the result is a `Data`
/// again.
macro_rules! map_data {
    ($data:expr, $values:ident => $body:expr) => {
        $crate::value::map_data!(@ $data, $values => $body, [Pred S8 S16 S32 S64 U8 U16 U32 U64 F16 BF16 F32 F64 C64 C128])
    };
    (@ $data:expr, $values:ident => $body:expr, [$($name:ident)*]) => {
        match $data { $(tilewright_ir::Data::$name($values) => tilewright_ir::Data::$name($body),)* }
    };
}
pub(crate) use map_data;

/// Returns the elements of `data`, whose type is that of the other slice.
pub(crate) fn alike<'a, T: Native>(_others: &[T], data: &'a Data) -> Outcome<&'a [T]> {
    data.as_slice().ok_or(WRONG_STORAGE)
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Array(Array),
    Tuple(Rc<Vec<Value>>),
    Token,
}

/// An array whose elements, in row-major order, may be shared.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    element_type: ElementType,
    dims: Dims,
    buffer: Rc<Buffer>,
    /// Whether its elements have no known relation to reals; see [`crate::algebra`].
    unsure: bool,
    /// The floats with these elements, if they are computed from constants alone.
    floats: Option<Rc<Array>>,
}

#[derive(Debug)]
struct Buffer {
    storage: Storage,
    /// Held as long as the data is.
    charge: Charge,
}

/// The storage of elements.
#[derive(Debug)]
enum Storage {
    Own(Data),
    /// In a literal that may be shared.
    Literal(Arc<Data>),
}

impl Storage {
    const NOTHING: Self = Self::Own(Data::Pred(Vec::new()));

    fn data(&self) -> &Data {
        match self {
            Self::Own(data) => data,
            Self::Literal(data) => data,
        }
    }

    /// Returns the elements, to be put into a literal.
    fn share(self) -> Arc<Data> {
        match self {
            Self::Own(data) => Arc::new(data),
            Self::Literal(data) => data,
        }
    }
}

impl Buffer {
    /// Returns the elements, given up.
    fn into_storage(mut self) -> Storage {
        std::mem::replace(&mut self.storage, Storage::NOTHING)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Storage::Own(data) = std::mem::replace(&mut self.storage, Storage::NOTHING) {
            self.charge.keep(data);
        }
    }
}

impl Array {
    /// Returns an array of these elements, whose memory was reserved.
    pub(crate) fn new(
        element_type: ElementType,
        dims: Dims,
        data: Data,
        charge: Charge,
    ) -> Outcome<Self> {
        let count = checked_product(&dims).and_then(|count| usize::try_from(count).ok());
        if count != Some(data.len()) || !data.stores(element_type) {
            return Err(Fault::Internal("the op yields another number or type of elements"));
        }
        Ok(Self::kept(element_type, dims, Storage::Own(data), charge))
    }

    fn kept(element_type: ElementType, dims: Dims, storage: Storage, charge: Charge) -> Self {
        Self {
            element_type,
            dims,
            buffer: Rc::new(Buffer { storage, charge }),
            unsure: false,
            floats: None,
        }
    }

    /// Returns a scalar, which is not counted as memory.
    pub(crate) fn scalar(
        element_type: ElementType,
        data: Data,
        ledger: &Rc<Ledger>,
    ) -> Outcome<Self> {
        Self::new(element_type, Dims::new(), data, ledger.reserve(0)?)
    }

    /// The array, marked as unsure.
    pub(crate) fn unsure(self) -> Self {
        Self { unsure: true, ..self }
    }

    /// The array with the floats whose elements these are.
    pub(crate) fn with_floats(self, floats: Option<Rc<Self>>) -> Self {
        Self { floats, ..self }
    }

    /// Returns the floats whose elements these are, if they are computed of constants alone.
    pub(crate) fn floats(&self) -> Option<&Rc<Self>> {
        self.floats.as_ref()
    }

    /// Checks whether it was marked so.
    pub(crate) fn is_unsure(&self) -> bool {
        self.unsure
    }

    pub(crate) fn element_type(&self) -> ElementType {
        self.element_type
    }

    pub(crate) fn dims(&self) -> &[i64] {
        &self.dims
    }

    pub(crate) fn rank(&self) -> usize {
        self.dims.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.data().len()
    }

    pub(crate) fn data(&self) -> &Data {
        self.buffer.storage.data()
    }

    pub(crate) fn slice<T: Native>(&self) -> Outcome<&[T]> {
        self.data().as_slice().ok_or(WRONG_STORAGE)
    }

    /// Returns the same elements under other dims.
    pub(crate) fn reshaped(mut self, dims: &[i64]) -> Outcome<Self> {
        if checked_product(dims) != checked_product(&self.dims) {
            return Err(Fault::Internal("a reshape changes the number of elements"));
        }
        self.dims = dims.into();
        Ok(self)
    }

    /// Returns the array with unshared elements: as it is if they are not shared, a copy
    /// otherwise.
    pub(crate) fn detach(mut self, ledger: &Rc<Ledger>) -> Outcome<Self> {
        if self.data_mut().is_none() {
            let charge = ledger.reserve(num_bytes(self.element_type, self.len()))?;
            let storage = Storage::Own(self.data().clone());
            self.buffer = Rc::new(Buffer { storage, charge });
        }
        Ok(self)
    }

    /// Returns the elements, to be changed; `None` while they are shared.
    pub(crate) fn data_mut(&mut self) -> Option<&mut Data> {
        match Rc::get_mut(&mut self.buffer)? {
            Buffer { storage: Storage::Own(data), .. } => Some(data),
            Buffer { storage: Storage::Literal(_), .. } => None,
        }
    }

    /// Returns the elements and their memory, if they are not shared.
    fn into_own(self) -> Result<(Data, Charge), Self> {
        let Self { element_type, dims, mut buffer, unsure, floats } = self;
        match Rc::get_mut(&mut buffer) {
            Some(Buffer { storage: Storage::Own(data), charge }) => {
                Ok((std::mem::replace(data, Data::Pred(Vec::new())), charge.take()))
            }
            _ => Err(Self { element_type, dims, buffer, unsure, floats }),
        }
    }

    /// Returns the array with changed elements, in place if they are not shared.
    pub(crate) fn modify(
        self,
        ledger: &Rc<Ledger>,
        change: impl FnOnce(&mut Data) -> Outcome<()>,
    ) -> Outcome<Value> {
        let mut own = self.detach(ledger)?;
        change(own.data_mut().ok_or(Fault::Internal("a result is shared"))?)?;
        Ok(Value::Array(own))
    }
}

/// Returns the bytes that store `count` elements.
pub(crate) fn num_bytes(element_type: ElementType, count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(u64::from(element_type.bytes()))
}

impl Value {
    /// Takes a literal in, without copying its elements.
    pub(crate) fn from_literal(literal: &Literal, ledger: &Rc<Ledger>) -> Outcome<Self> {
        Ok(match literal {
            Literal::Array(array) => {
                let charge = ledger.reserve(num_bytes(array.element_type(), array.len()))?;
                let storage = Storage::Literal(array.shared_data());
                let dims = array.dims().into();
                Self::Array(Array::kept(array.element_type(), dims, storage, charge))
            }
            Literal::Tuple(elements) => {
                let elements = elements.iter().map(|e| Self::from_literal(e, ledger));
                Self::Tuple(Rc::new(elements.collect::<Outcome<_>>()?))
            }
            Literal::Token => Self::Token,
            Literal::Elided(_) => return Err(Fault::Elided),
        })
    }

    /// Returns the value; copies only shared elements.
    pub(crate) fn into_literal(self) -> Result<Literal, LiteralError> {
        Ok(match self {
            Self::Array(Array { element_type, dims, buffer, .. }) => {
                let data = match Rc::try_unwrap(buffer) {
                    Ok(own) => own.into_storage().share(),
                    Err(shared) => match &shared.storage {
                        Storage::Own(data) => Arc::new(data.clone()),
                        Storage::Literal(data) => Arc::clone(data),
                    },
                };
                Literal::Array(ArrayLiteral::new(element_type, dims, data)?)
            }
            Self::Tuple(elements) => {
                let elements = Rc::try_unwrap(elements).unwrap_or_else(|shared| (*shared).clone());
                let elements = elements.into_iter().map(Self::into_literal);
                Literal::Tuple(elements.collect::<Result<_, _>>()?)
            }
            Self::Token => Literal::Token,
        })
    }

    pub(crate) fn array(&self) -> Outcome<&Array> {
        match self {
            Self::Array(array) => Ok(array),
            Self::Tuple(_) | Self::Token => Err(Fault::Internal("an operand is not an array")),
        }
    }

    /// Takes the elements of an array out, if they are not shared.
    pub(crate) fn take_own(&mut self) -> Option<(Data, Charge)> {
        match std::mem::replace(self, Self::Token) {
            Self::Array(array) => match array.into_own() {
                Ok(own) => Some(own),
                Err(array) => {
                    *self = Self::Array(array);
                    None
                }
            },
            other => {
                *self = other;
                None
            }
        }
    }

    pub(crate) fn into_array(self) -> Outcome<Array> {
        match self {
            Self::Array(array) => Ok(array),
            Self::Tuple(_) | Self::Token => Err(Fault::Internal("an operand is not an array")),
        }
    }
}

fn words<const N: usize, T>(bytes: &[u8], of: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|&word| of(word)).collect()
}

/// Returns the elements whose bytes these are, the low byte first; truth values take a byte
/// each.
pub(crate) fn data_of_bytes(bytes: &[u8], element_type: ElementType) -> Data {
    match Data::zeros(element_type, 0) {
        Data::Pred(_) => Data::Pred(bytes.iter().map(|&b| b != 0).collect()),
        Data::S8(_) => Data::S8(words(bytes, i8::from_le_bytes)),
        Data::S16(_) => Data::S16(words(bytes, i16::from_le_bytes)),
        Data::S32(_) => Data::S32(words(bytes, i32::from_le_bytes)),
        Data::S64(_) => Data::S64(words(bytes, i64::from_le_bytes)),
        Data::U8(_) => Data::U8(bytes.to_vec()),
        Data::U16(_) => Data::U16(words(bytes, u16::from_le_bytes)),
        Data::U32(_) => Data::U32(words(bytes, u32::from_le_bytes)),
        Data::U64(_) => Data::U64(words(bytes, u64::from_le_bytes)),
        Data::F16(_) => Data::F16(words(bytes, f16::from_le_bytes)),
        Data::BF16(_) => Data::BF16(words(bytes, bf16::from_le_bytes)),
        Data::F32(_) => Data::F32(words(bytes, f32::from_le_bytes)),
        Data::F64(_) => Data::F64(words(bytes, f64::from_le_bytes)),
        Data::C64(_) => Data::C64(pairs(words(bytes, f32::from_le_bytes))),
        Data::C128(_) => Data::C128(pairs(words(bytes, f64::from_le_bytes))),
    }
}

fn pairs<T: Copy>(parts: Vec<T>) -> Vec<Complex<T>> {
    parts.as_chunks::<2>().0.iter().map(|&[re, im]| Complex::new(re, im)).collect()
}

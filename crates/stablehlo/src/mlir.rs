//! MLIR's operations, types and attributes, as far as StableHLO programs have them.
//!
//! Text and bytecode are both read into this tree, so that the rest of the crate does not know
//! which of the two a program came from. Nothing here is verified: an operation may have any
//! number of operands, results, attributes and regions.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use smol_str::SmolStr;

/// A program: its outermost operation, which is usually a `builtin.module`, and the types of its
/// values.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The outermost operation.
    pub module: Operation,
    /// The type of each value, by its number.
    pub values: Vec<Type>,
    /// The locations of arguments of blocks, as far as they are known.
    pub argument_locations: FxHashMap<Value, Arc<Location>>,
}

impl Program {
    /// Returns the type of a value; `None` if the program has no such value.
    pub fn type_of(&self, value: Value) -> Option<&Type> {
        self.values.get(usize::try_from(value.0).ok()?)
    }
}

/// A value, by its number in [`Program::values`]: a result of an operation or an argument of a
/// block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// The bytes of a text from which an operation was read, or its offset in a bytecode file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The offset of the first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The full name: `stablehlo.add`, `func.func`.
    pub name: SmolStr,
    /// The operands.
    pub operands: SmallVec<[Value; 4]>,
    /// The results.
    pub results: SmallVec<[Value; 1]>,
    /// The attributes in the order of the source, properties among them.
    pub attributes: Attributes,
    /// The regions.
    pub regions: Vec<Region>,
    /// The origin in the user's program.
    pub location: Option<Arc<Location>>,
    /// The place in the file.
    pub span: Span,
}

impl Operation {
    /// Returns the attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        value_of(&self.attributes, name)
    }
}

/// Attributes by their names.
pub type Attributes = Vec<(SmolStr, Attribute)>;

/// Returns the attribute of this name.
pub fn value_of<'a>(attributes: &'a [(SmolStr, Attribute)], name: &str) -> Option<&'a Attribute> {
    attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// A list of blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// The blocks; StableHLO has one in each region.
    pub blocks: Vec<Block>,
}

/// A list of operations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The arguments.
    pub arguments: Vec<Value>,
    /// The operations; the last one usually is a `return`.
    pub operations: Vec<Operation>,
}

/// The origin of an operation in the user's program.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
    /// It is not known.
    Unknown,
    /// `"file.py":10:4 to 12:8`; without an end, the end is the beginning.
    File {
        /// The path of the file.
        file: SmolStr,
        /// The line and column of the beginning.
        start: (u32, u32),
        /// The line and column of the end.
        end: (u32, u32),
    },
    /// `"name"(child)`.
    Name {
        /// The name.
        name: SmolStr,
        /// The location that has this name.
        child: Arc<Location>,
    },
    /// `callsite(callee at caller)`.
    Call {
        /// The location in the called function.
        callee: Arc<Location>,
        /// The location of the call.
        caller: Arc<Location>,
    },
    /// `fused<metadata>["a", "b"]`.
    Fused {
        /// The attribute, if there is one.
        metadata: Option<Box<Attribute>>,
        /// The locations.
        parts: Vec<Arc<Location>>,
    },
}

/// The type of an element of a tensor, or of a scalar.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// `i32`, `si32` or `ui32`.
    Integer {
        /// The number of bits.
        bits: u32,
        /// The sign in the type's name.
        sign: Sign,
    },
    /// `f32`, `bf16`, `tf32`, `f8E4M3FN`: by its name.
    Float(SmolStr),
    /// `complex<f32>`.
    Complex(Box<Scalar>),
    /// `index`.
    Index,
    /// A type that is not modelled, by its text: `!quant.uniform<...>`.
    Other(SmolStr),
}

/// The sign in the name of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// `i32`.
    Signless,
    /// `si32`.
    Signed,
    /// `ui32`.
    Unsigned,
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// `f32`, `index`.
    Scalar(Scalar),
    /// `tensor<2x?x3xf32, encoding>`.
    Tensor(TensorType),
    /// `tensor<*xf32>`.
    UnrankedTensor(Scalar),
    /// A type that is not modelled.
    Other {
        /// The text of the type.
        text: SmolStr,
    },
    /// `tuple<a, b>`.
    Tuple(Vec<Type>),
    /// `!stablehlo.token` or `!mhlo.token`.
    Token,
    /// `!stablehlo.future<a, b>`: the result of an asynchronous op.
    Future(Vec<Type>),
    /// `(a, b) -> (c)`.
    Function(FunctionType),
    /// `none`.
    None,
}

/// The type of a ranked tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorType {
    /// The dims; `None` is a dynamic one.
    pub dims: SmallVec<[Option<i64>; 4]>,
    /// The type of the elements.
    pub element: Scalar,
    /// The attribute after the element type, for example bounds of dynamic dims.
    pub encoding: Option<Box<Attribute>>,
}

/// The type of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionType {
    /// The types of the arguments.
    pub inputs: Vec<Type>,
    /// The types of the results.
    pub results: Vec<Type>,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// `unit`.
    Unit,
    /// `true` or `false`.
    Bool(bool),
    /// `3 : i64`.
    Integer(i128, Type),
    /// `1.5 : f32`, as the value and its type.
    Float(f64, Type),
    /// `"text"`; MLIR's strings are bytes.
    String(Arc<[u8]>),
    /// `@a::@b`.
    Symbol(SmallVec<[SmolStr; 1]>),
    /// `[a, b]`.
    Array(Vec<Attribute>),
    /// `array<i64: 1, 2>`.
    DenseArray(DenseArray),
    /// `dense<[1, 2]> : tensor<2xi32>`.
    Dense(DenseElements),
    /// `dense_resource<name> : tensor<2xf32>`: the name, the bytes if the file has them, the type.
    Resource {
        /// The name.
        name: SmolStr,
        /// The contents, without the alignment that MLIR writes before them.
        bytes: Option<Arc<[u8]>>,
        /// The type.
        ty: Box<Type>,
    },
    /// `{a = 1 : i32, b}`.
    Dictionary(Attributes),
    /// A type.
    Type(Box<Type>),
    /// `loc(...)`.
    Location(Arc<Location>),
    /// An attribute of a dialect that is modelled: StableHLO's and CHLO's.
    Dialect(Box<DialectAttribute>),
    /// Any other attribute, for example Shardy's: the text after the dialect's name and the dot, as
    /// MLIR prints it. `#sdy.sharding<@mesh, [{"x"}]>` has the dialect `sdy` and the text
    /// `sharding<@mesh, [{"x"}]>`.
    Opaque {
        /// The name of the dialect.
        dialect: SmolStr,
        /// The text.
        text: Arc<str>,
    },
}

impl Attribute {
    /// `3 : i64`.
    pub fn i64(value: i64) -> Self {
        Self::integer(value, 64)
    }

    /// `3 : i32`, of any number of bits.
    pub fn integer(value: i64, bits: u32) -> Self {
        let ty = Scalar::Integer { bits, sign: Sign::Signless };
        Self::Integer(value.into(), Type::Scalar(ty))
    }

    /// `array<i64: 0, 1>`.
    pub fn i64s(values: impl IntoIterator<Item = i64>) -> Self {
        Self::DenseArray(DenseArray::I64(values.into_iter().collect()))
    }

    /// `"text"`.
    pub fn text(text: &str) -> Self {
        Self::String(text.as_bytes().into())
    }

    /// `#dialect<name VALUE>`.
    pub fn word(dialect: &str, name: &str, value: &str) -> Self {
        Self::structure(dialect, name, vec![("value".into(), Self::text(value))])
    }

    /// `#dialect.name<...>` with these parameters.
    pub fn structure(dialect: &str, name: &str, parameters: Attributes) -> Self {
        let (dialect, name) = (dialect.into(), name.into());
        Self::Dialect(Box::new(DialectAttribute { dialect, name, parameters }))
    }
}

/// An attribute of StableHLO with named parameters.
///
/// - `#stablehlo.dot<lhs_batching_dimensions = [0], ...>` is `dot`, each list a
///   [`DenseArray::I64`]; a list that the text omits is missing here, too.
/// - `#stablehlo<comparison_direction LT>` is `comparison_direction` with the parameter `value`, an
///   [`Attribute::String`].
/// - `#stablehlo.channel_handle<handle = 1, type = 0>` is `channel_handle`, each an
///   [`Attribute::Integer`] of type `i64`.
/// - `#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>` is `conv`, with the parameters
///   `input_batch_dimension`, `input_feature_dimension`, `input_spatial_dimensions`, the same three
///   of `kernel_..` (`kernel_input_feature_dimension`, `kernel_output_feature_dimension`,
///   `kernel_spatial_dimensions`) and of `output_..`.
/// - `#stablehlo.bounds<?, 4>` is `bounds` with the parameter `value`, a list of `i64`;
///   `i64::MIN` stands for `?`.
/// - The parameters of all others have the names that StableHLO's definitions give them.
#[derive(Clone, Debug, PartialEq)]
pub struct DialectAttribute {
    /// `stablehlo`, `chlo` or `mhlo`.
    pub dialect: SmolStr,
    /// The name without the dialect.
    pub name: SmolStr,
    /// The parameters.
    pub parameters: Attributes,
}

/// `array<i64: 1, 2>`.
#[derive(Clone, Debug, PartialEq)]
pub enum DenseArray {
    /// Booleans.
    Bool(Vec<bool>),
    /// Integers of 8, 16, 32 bits, as the number of bits and the values.
    Integer(u32, Vec<i64>),
    /// Integers of 64 bits.
    I64(Vec<i64>),
    /// Floats of 32 bits.
    F32(Vec<f32>),
    /// Floats of 64 bits.
    F64(Vec<f64>),
}

/// The elements of a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseElements {
    /// The type: a tensor with known dims.
    pub ty: Box<Type>,
    /// The elements. If there is one, and the type has another number of elements, all are equal
    /// to it.
    pub elements: Elements,
}

/// Elements of a constant in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// In little-endian bytes, each element rounded up to whole bytes: 1 byte for an `i1` or an
    /// `i4`, the real part of a complex number first.
    Bytes(Arc<[u8]>),
    /// Strings.
    Strings(Vec<Arc<[u8]>>),
}

//! The operand of a composite, against which its other arguments are checked, and the ops that
//! composites consist of.

use crate::shape::{Dims, checked_product};
use crate::{ArrayShape, BuildError, Builder, ElementType, InstId, Literal, Opcode};

/// An array, with the name of the composite and of its argument.
pub(super) struct CompositeOperand {
    pub(super) composite: &'static str,
    argument: &'static str,
    pub(super) id: InstId,
    pub(super) shape: ArrayShape,
}

impl CompositeOperand {
    /// Checks for an array of static dims.
    pub(super) fn of(
        b: &Builder,
        composite: &'static str,
        argument: &'static str,
        id: InstId,
    ) -> Result<Self, BuildError> {
        let shape = b.array_shape(id).map_err(|error| match error {
            BuildError::NotAnArray { name, .. } => {
                BuildError::NotAnArray { method: composite, name }
            }
            other => other,
        })?;
        let operand = Self { composite, argument, id, shape: shape.without_layout() };
        if !shape.is_static() || checked_product(shape.dims()).is_none() {
            return Err(
                operand.error(argument, format!("it takes an array of static dims, not {shape}"))
            );
        }
        Ok(operand)
    }

    /// Checks for an array of static dims and of float types that sums support.
    pub(super) fn of_floats(
        b: &Builder,
        composite: &'static str,
        argument: &'static str,
        id: InstId,
    ) -> Result<Self, BuildError> {
        let operand = Self::of(b, composite, argument, id)?;
        match operand.element_type() {
            ElementType::F16 | ElementType::BF16 | ElementType::F32 | ElementType::F64 => {
                Ok(operand)
            }
            other => {
                let types = "f16, bf16, f32 or f64";
                let why = format!("it takes elements of {types}, not {other}; convert them first");
                Err(operand.error(operand.argument, why))
            }
        }
    }

    /// Returns the error of an argument.
    pub(super) fn error(&self, argument: &'static str, why: String) -> BuildError {
        BuildError::Argument { method: self.composite, argument, why }
    }

    pub(super) fn element_type(&self) -> ElementType {
        self.shape.element_type
    }

    /// Returns the type in which moments are computed.
    pub(super) fn moment_type(&self) -> ElementType {
        match self.element_type() {
            ElementType::F64 => ElementType::F64,
            _ => ElementType::F32,
        }
    }

    /// Converts a dim number that an argument says, which may be negative, to one of HLO.
    pub(super) fn dim(&self, argument: &'static str, dim: i64) -> Result<i64, BuildError> {
        let rank = i64::try_from(self.shape.rank()).unwrap_or(i64::MAX);
        let from_start = if dim < 0 { dim.checked_add(rank) } else { Some(dim) };
        from_start.filter(|d| (0..rank).contains(d)).ok_or_else(|| {
            self.error(
                argument,
                format!("there is no dim {dim} in {}, which has {rank}", self.shape),
            )
        })
    }

    /// Converts dim numbers that an argument says to those of HLO, ascending.
    pub(super) fn dims(&self, argument: &'static str, dims: &[i64]) -> Result<Dims, BuildError> {
        let found: Result<Dims, _> = dims.iter().map(|&d| self.dim(argument, d)).collect();
        self.distinct(argument, found?)
    }

    /// Sorts dims of HLO, the last of which an argument says; no two may be equal.
    pub(super) fn distinct(
        &self,
        argument: &'static str,
        mut found: Dims,
    ) -> Result<Dims, BuildError> {
        found.sort_unstable();
        match found.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                Err(self
                    .error(argument, format!("dim {} of {} is named twice", pair[0], self.shape)))
            }
            None => Ok(found),
        }
    }

    /// Returns the size of an existing dim.
    pub(super) fn size(&self, dim: i64) -> i64 {
        usize::try_from(dim).ok().and_then(|d| self.shape.dims().get(d).copied()).unwrap_or(0)
    }

    pub(super) fn sizes(&self, dims: &[i64]) -> Dims {
        dims.iter().map(|&d| self.size(d)).collect()
    }

    /// Returns all dims except these.
    pub(super) fn other_dims(&self, dims: &[i64]) -> Dims {
        (0..).zip(self.shape.dims()).map(|(d, _)| d).filter(|d| !dims.contains(d)).collect()
    }

    /// Returns the elements in the type in which moments are computed.
    pub(super) fn widened(&self, b: &mut Builder) -> Result<InstId, BuildError> {
        convert(b, self.id, self.moment_type())
    }

    /// Converts a value computed from the widened elements to the type of the operand.
    pub(super) fn narrowed(&self, b: &mut Builder, id: InstId) -> Result<InstId, BuildError> {
        convert(b, id, self.element_type())
    }
}

/// Returns the shape of an array, without its layout.
pub(super) fn shape_of(b: &Builder, id: InstId) -> Result<ArrayShape, BuildError> {
    b.array_shape(id).map(ArrayShape::without_layout)
}

/// Converts the elements to another type; the array itself if it already has the type.
pub(super) fn convert(
    b: &mut Builder,
    id: InstId,
    element_type: ElementType,
) -> Result<InstId, BuildError> {
    if b.array_shape(id)?.element_type == element_type {
        return Ok(id);
    }
    b.convert(id, element_type)
}

/// Broadcasts a number to the shape of an array of f32 or f64.
pub(super) fn filled(
    b: &mut Builder,
    value: f64,
    element_type: ElementType,
    dims: &[i64],
) -> Result<InstId, BuildError> {
    #[expect(clippy::cast_possible_truncation, reason = "rounds, as constants do")]
    let scalar = match element_type {
        ElementType::F64 => Literal::scalar(element_type, value),
        _ => Literal::scalar(element_type, value as f32),
    };
    let scalar = b.constant(scalar?)?;
    if dims.is_empty() { Ok(scalar) } else { b.broadcast(scalar, dims, []) }
}

/// Applies an op to an array and a number, elementwise.
pub(super) fn with_number(
    b: &mut Builder,
    opcode: Opcode,
    id: InstId,
    number: f64,
) -> Result<InstId, BuildError> {
    let shape = shape_of(b, id)?;
    let number = filled(b, number, shape.element_type, shape.dims())?;
    b.binary(opcode, id, number)
}

/// Applies an op elementwise to `lhs` and an array that has only the dims `kept` of it.
pub(super) fn with_spread(
    b: &mut Builder,
    opcode: Opcode,
    lhs: InstId,
    rhs: InstId,
    kept: &[i64],
) -> Result<InstId, BuildError> {
    let dims = shape_of(b, lhs)?;
    let rhs = b.broadcast(rhs, dims.dims(), kept)?;
    b.binary(opcode, lhs, rhs)
}

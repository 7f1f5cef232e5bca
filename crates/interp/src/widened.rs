//! Widens the floats of a program, so that its results have almost no rounding error.

use half::{bf16, f16};
use num_complex::Complex;
use rustc_hash::FxHashMap;
use tilewright_ir::ops::contract::DotAttrs;
use tilewright_ir::verify::{Rejected, Verified, verify};
use tilewright_ir::{
    ArrayLiteral, ArrayShape, CompId, Data, EditError, ElementType, Extras, Header, InstId,
    Literal, LiteralError, Module, Op, Position, Shape,
};

/// Why a module has no counterpart in wider floats.
#[derive(Debug, thiserror::Error)]
pub enum WidenError {
    /// The instruction reads or makes the bits of floats.
    #[error("`{0}` depends on how floats are stored, so the module has no wider counterpart")]
    Bits(String),
    /// A constant was left out of the text.
    #[error("`{0}` was left out of the text, so that nothing is known of it")]
    Elided(String),
    /// A graph edit failed.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A constant could not be made.
    #[error(transparent)]
    Literal(#[from] LiteralError),
    /// The wider module does not verify.
    #[error(transparent)]
    Rejected(#[from] Box<Rejected>),
}

/// Returns the same program with `f16`, `bf16` and `f32` as `f64`, and `c64` as `c128`: in
/// parameters, constants, results and all between.
///
/// Instructions keep their names. Conversions between these types and
/// `reduce-precision` leave values as they are. Floats of 8 bits and less stay, and so do
/// integers. Metadata, shardings, aliases and schedules are left out.
/// [`widened_literal`] makes the inputs.
///
/// # Errors
/// Returns an error if an instruction depends on how floats are stored (`bitcast-convert`,
/// `stochastic-convert`), or the module has another op that does not take the wider types.
pub fn widened(module: &Module) -> Result<Verified, WidenError> {
    let header = Header {
        replica_count: module.header.replica_count,
        num_partitions: module.header.num_partitions,
        // The meshes of shardings, by which devices find their parts.
        frontend_attributes: module.header.frontend_attributes.clone(),
        ..Header::default()
    };
    let mut wide = Module::new(module.name.clone());
    wide.header = header;
    let mut widening =
        Widening { module, wide, computations: FxHashMap::default(), values: FxHashMap::default() };
    for &id in module.computations() {
        widening.computation(id)?;
    }
    Ok(verify(widening.wide)?)
}

/// Returns a value with its floats widened as [`widened`] does; those in tuples, too.
///
/// # Errors
/// Returns an error if the text left out a part of the literal.
pub fn widened_literal(literal: &Literal) -> Result<Literal, LiteralError> {
    Ok(match literal {
        Literal::Array(array) => Literal::Array(widened_array(array)?),
        Literal::Tuple(elements) => {
            Literal::Tuple(elements.iter().map(widened_literal).collect::<Result<_, _>>()?)
        }
        Literal::Token => Literal::Token,
        Literal::Elided(_) => return Err(LiteralError::NotStatic),
    })
}

fn widened_array(array: &ArrayLiteral) -> Result<ArrayLiteral, LiteralError> {
    let data = match array.data() {
        Data::F16(v) => Data::F64(v.iter().copied().map(f16::to_f64).collect()),
        Data::BF16(v) => Data::F64(v.iter().copied().map(bf16::to_f64).collect()),
        Data::F32(v) => Data::F64(v.iter().copied().map(f64::from).collect()),
        Data::C64(v) => {
            Data::C128(v.iter().map(|x| Complex::new(x.re.into(), x.im.into())).collect())
        }
        Data::Pred(_)
        | Data::S8(_)
        | Data::S16(_)
        | Data::S32(_)
        | Data::S64(_)
        | Data::U8(_)
        | Data::U16(_)
        | Data::U32(_)
        | Data::U64(_)
        | Data::F64(_)
        | Data::C128(_) => return Ok(array.clone()),
    };
    ArrayLiteral::new(widened_type(array.element_type()), array.dims().iter().copied(), data)
}

/// Returns the type that replaces another one in a widened module.
fn widened_type(element_type: ElementType) -> ElementType {
    match element_type {
        ElementType::F16 | ElementType::BF16 | ElementType::F32 => ElementType::F64,
        ElementType::C64 => ElementType::C128,
        other => other,
    }
}

fn widened_array_shape(shape: &ArrayShape) -> ArrayShape {
    shape.clone().with_element_type(widened_type(shape.element_type))
}

fn widened_shape(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => Shape::Array(widened_array_shape(array)),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(widened_shape).collect()),
        Shape::Buffer(inner) => Shape::Buffer(Box::new(widened_shape(inner))),
        Shape::Token => Shape::Token,
        Shape::Opaque => Shape::Opaque,
    }
}

struct Widening<'m> {
    module: &'m Module,
    wide: Module,
    computations: FxHashMap<CompId, CompId>,
    values: FxHashMap<InstId, InstId>,
}

impl Widening<'_> {
    fn computation(&mut self, id: CompId) -> Result<(), WidenError> {
        let old = self.module.computation(id);
        let new = self.wide.add_computation(old.name());
        self.computations.insert(id, new);
        for instruction in self.module.instructions(id) {
            self.instruction(instruction, new)?;
        }
        self.wide.order_parameters(new)?;
        if let Some(&root) = old.root().and_then(|root| self.values.get(&root)) {
            self.wide.set_root(root)?;
        }
        if self.module.entry() == Some(id) {
            self.wide.set_entry(new);
        }
        Ok(())
    }

    fn instruction(&mut self, id: InstId, computation: CompId) -> Result<(), WidenError> {
        let name = self.module.name_of(id);
        let op = self.op(id)?;
        let shape = widened_shape(self.module.shape(id));
        let new_of = |old: &InstId| self.values.get(old).copied().unwrap_or(*old);
        let operands: Vec<InstId> = self.module.operands(id).iter().map(new_of).collect();
        let waits_for: Vec<InstId> = self
            .module
            .extras(id)
            .map(|extras| extras.control_predecessors.iter().map(new_of).collect())
            .unwrap_or_default();
        let new = self.wide.insert(Position::End(computation), op, shape, &operands, name)?;
        // The result of an unknown call depends on its options.
        if let Some(extras) = self.module.extras(id) {
            let mut kept = Extras::default();
            kept.backend_config.clone_from(&extras.backend_config);
            self.wide.set_extras(new, kept);
        }
        self.wide.set_control_predecessors(new, waits_for);
        self.values.insert(id, new);
        Ok(())
    }

    /// Returns the op, of the computations of the wider module.
    fn op(&self, id: InstId) -> Result<Op, WidenError> {
        let name = || self.module.name_of(id).to_owned();
        let mut op = match self.module.op(id) {
            Op::Constant(value) => {
                let wide = widened_literal(value).map_err(|_| WidenError::Elided(name()))?;
                Op::Constant(Box::new(wide))
            }
            Op::BitcastConvert | Op::StochasticConvert if self.touches_floats(id) => {
                return Err(WidenError::Bits(name()));
            }
            Op::ReducePrecision(_) => Op::Convert,
            // The algorithm names the types that products are computed in.
            Op::Dot(attrs) => {
                Op::Dot(Box::new(DotAttrs { algorithm: None, ..attrs.as_ref().clone() }))
            }
            Op::Outfeed(attrs) => {
                let mut attrs = attrs.clone();
                attrs.outfeed_shape = attrs.outfeed_shape.as_ref().map(widened_shape);
                Op::Outfeed(attrs)
            }
            Op::CustomCall(attrs) => {
                let mut attrs = attrs.clone();
                let passed = attrs.operand_layout_constraints.take();
                attrs.operand_layout_constraints =
                    passed.map(|shapes| shapes.iter().map(widened_shape).collect());
                Op::CustomCall(attrs)
            }
            other => other.clone(),
        };
        op.map_computations(&mut |old| self.computations.get(&old).copied().unwrap_or(old));
        Ok(op)
    }

    /// Checks whether elements of the result are of a type that becomes a wider one.
    fn is_widened(&self, id: InstId) -> bool {
        let shape = self.module.array_shape(id);
        shape.is_some_and(|shape| widened_type(shape.element_type) != shape.element_type)
    }

    /// Checks whether the elements of the operand or of the result are widened.
    fn touches_floats(&self, id: InstId) -> bool {
        self.is_widened(id) || self.module.operands(id).iter().any(|&o| self.is_widened(o))
    }
}

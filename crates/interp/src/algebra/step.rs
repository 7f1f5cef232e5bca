//! One instruction over the field.

use std::hash::{Hash as _, Hasher as _};
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::shape::checked_product;
use tilewright_ir::{Data, ElementType, Family, InstId, Op, Opcode, Shape, Verified};

use super::Numbers;
use super::constant::elements;
use super::field::{INFINITY, UNSURE, hash, marks, negate, random, residue};
use super::function::ELEMENT;
use super::meaning::{Doubt, Doubts, Meaning, hands_on, has_floats, meaning};
use super::ties::{Ties, leaves_sign_open};
use crate::dynamic::is_dynamic;
use crate::error::{Fault, Outcome};
use crate::eval::{self, Cx, Operands, unsupported};
use crate::frame::Evaluator;
use crate::lanes::single_op;
use crate::limits::Ledger;
use crate::value::{Array, Value, num_bytes};

/// The state of an evaluation over the field besides its values.
#[derive(Debug, Default)]
pub(crate) struct Field {
    doubts: Doubts,
    /// Constants, made once.
    constants: FxHashMap<InstId, Value>,
    /// The number of calls of random functions with a state.
    calls: u64,
    /// The comparisons so far, if they are looked at.
    pub(crate) ties: Option<Ties>,
}

/// Largest number of elements for which values computed from constants only are computed as
/// floats too.
const MOST_OF_CONSTANTS: usize = 1 << 20;

impl Field {
    /// A state that looks for comparisons of equal values.
    pub(super) fn looking_for_ties() -> Self {
        Self { ties: Some(Ties::default()), ..Self::default() }
    }
}

impl Evaluator<'_> {
    /// The instruction's value over the field.
    pub(crate) fn run_over_field(&mut self, id: InstId, operands: Operands) -> Outcome<Value> {
        if is_dynamic(self.module, id) {
            return Err(unsupported("sizes known only at run time"));
        }
        if let Op::Constant(_) | Op::Iota(_) = self.module.op(id) {
            return self.constant_over_field(id);
        }
        let floats = self.of_constants(id, &operands)?;
        let value = match &floats {
            Some(floats) if !is_exact(self.module, id) => over_field(floats, &self.ledger)?,
            _ => self.of_elements(id, operands)?,
        };
        let value = if hands_on(self.module, id) { value } else { with_floats(value, floats) };
        let looks_for_ties = self.field.as_ref().is_some_and(|field| field.ties.is_some());
        match looks_for_ties && leaves_sign_open(self.module, id) {
            true => mark(value, &self.ledger),
            false => Ok(value),
        }
    }

    fn of_elements(&mut self, id: InstId, operands: Operands) -> Outcome<Value> {
        let takes_floats =
            self.module.operands(id).iter().any(|&operand| has_floats(self.module.shape(operand)));
        match meaning(self.module, id) {
            Meaning::Unknown => self.unknown(id, &operands),
            Meaning::Bits if takes_floats => self.unknown(id, &operands),
            Meaning::Bits => {
                let doubt = operands.iter().any(is_unsure);
                let value = self.as_floats(id, operands)?;
                let value = over_field(&value, &self.ledger)?;
                if doubt { mark(value, &self.ledger) } else { Ok(value) }
            }
            Meaning::Evaluated => self.evaluated(id, operands),
        }
    }

    fn evaluated(&mut self, id: InstId, operands: Operands) -> Outcome<Value> {
        let doubt = self.doubts(id, &operands)?;
        let operands = self.with_neutral_init(id, operands)?;
        let shape = Numbers::Field.shape(self.module.shape(id));
        let value = eval::instruction(&mut Cx { evaluator: self, id, shape: &shape, operands })?;
        if doubt { mark(value, &self.ledger) } else { Ok(value) }
    }

    /// Returns the operands. The constant init of a maximum or minimum loses its marks if it is
    /// the neutral infinity, which leaves nothing open; in other places an infinity does.
    fn with_neutral_init(&self, id: InstId, mut operands: Operands) -> Outcome<Operands> {
        let Op::Reduce(attrs) = self.module.op(id) else { return Ok(operands) };
        let function = single_op(self.module, attrs.to_apply).map(|op| self.module.opcode(op));
        let neutral = match function {
            Some(Opcode::Maximum) => negate(INFINITY),
            Some(Opcode::Minimum) => INFINITY,
            _ => return Ok(operands),
        };
        let is_constant = |&init: &InstId| self.module.constant(init).is_some();
        if let [Value::Array(array), init] = operands.as_mut_slice()
            && array.len() > 0
            && self.module.operands(id).get(1).is_some_and(is_constant)
            && let Data::F64(values) = init.array()?.data()
            && values.iter().all(|value| residue(value.to_bits()) == neutral)
        {
            *init = init.array()?.clone().modify(&self.ledger, |data| {
                *data = Data::F64(vec![f64::from_bits(neutral)]);
                Ok(())
            })?;
        }
        Ok(operands)
    }

    /// Checks whether the result tells nothing about reals.
    fn doubts(&mut self, id: InstId, operands: &Operands) -> Outcome<bool> {
        if let Op::Conditional(_) = self.module.op(id) {
            return Ok(operands.first().is_some_and(is_unsure));
        }
        if hands_on(self.module, id) {
            return Ok(false);
        }
        let field = self.field.as_mut().ok_or(Fault::Internal("there is no field"))?;
        let own = match field.doubts.of(self.module, id) {
            Doubt::None => false,
            Doubt::Always => true,
            Doubt::IfUnsure => operands.iter().any(has_unsure_elements),
        };
        Ok(own || operands.iter().any(is_unsure))
    }

    /// Returns the value that the program computes in floats from constants only: a compiler
    /// may have computed it before.
    fn of_constants(&mut self, id: InstId, operands: &Operands) -> Outcome<Option<Value>> {
        let module = self.module;
        let computes = matches!(
            module.opcode(id).family(),
            Family::Elementwise | Family::Shaping | Family::Indexing
        );
        let small = module.array_shape(id).is_some_and(|shape| {
            let count = checked_product(shape.dims()).and_then(|n| usize::try_from(n).ok());
            count.is_some_and(|count| count <= MOST_OF_CONSTANTS)
        });
        if !(computes && small && module.called(id).is_empty()) {
            return Ok(None);
        }
        let floats = operands.iter().map(|operand| Some(operand.array().ok()?.floats()?.clone()));
        let Some(floats) = floats.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let floats = floats.into_iter().map(|array| Value::Array((*array).clone()));
        self.as_floats(id, floats.collect()).map(Some)
    }

    fn constant_over_field(&mut self, id: InstId) -> Outcome<Value> {
        if let Some(value) = self.field.as_ref().and_then(|field| field.constants.get(&id)) {
            return Ok(value.clone());
        }
        let floats = self.as_floats(id, Operands::new())?;
        let value = with_floats(over_field(&floats, &self.ledger)?, Some(floats));
        if let Some(field) = self.field.as_mut() {
            field.constants.insert(id, value.clone());
        }
        Ok(value)
    }

    /// Evaluates an instruction that calls no computation with ordinary floats.
    fn as_floats(&mut self, id: InstId, operands: Operands) -> Outcome<Value> {
        let field = self.field.take();
        let shape = self.module.shape(id);
        let value = eval::instruction(&mut Cx { evaluator: self, id, shape, operands });
        self.field = field;
        value
    }

    /// Returns a random function of all operands, unsure; of one that has a state, another each
    /// time.
    fn unknown(&mut self, id: InstId, operands: &Operands) -> Outcome<Value> {
        let module = self.module;
        let mut key = hash(module.opcode(id).name().bytes().map(u64::from));
        if module.called(id).is_empty() {
            key = hash([key, hash(format!("{:?}", module.op(id)).bytes().map(u64::from))]);
        }
        if let (Op::Rng(_), Some(field)) = (module.op(id), self.field.as_mut()) {
            field.calls += 1;
            key = hash([key, field.calls]);
        }
        let key = hash([key].into_iter().chain(operands.iter().map(hash_of)));
        let mut leaf = 0;
        self.random_value(module.shape(id), key, &mut leaf)
    }

    fn random_value(&self, shape: &Shape, key: u64, leaf: &mut u64) -> Outcome<Value> {
        match shape {
            Shape::Array(array) => {
                *leaf += 1;
                let kept = Numbers::Field.kept(array.element_type);
                let len = checked_product(array.dims()).and_then(|n| usize::try_from(n).ok());
                let len = len.ok_or(Fault::Internal("an array has more than 2^63 elements"))?;
                let charge = self.ledger.reserve(num_bytes(kept, len))?;
                self.ledger.spend(u64::try_from(len).unwrap_or(u64::MAX))?;
                let data = random_data(kept, len, hash([key, *leaf]));
                let array = Array::new(kept, array.dims().into(), data, charge)?;
                mark(Value::Array(array), &self.ledger)
            }
            Shape::Tuple(elements) => {
                let elements = elements.iter().map(|e| self.random_value(e, key, leaf));
                Ok(Value::Tuple(Rc::new(elements.collect::<Outcome<_>>()?)))
            }
            Shape::Token => Ok(Value::Token),
            Shape::Buffer(_) | Shape::Opaque => Err(unsupported(format!("a result of {shape}"))),
        }
    }
}

/// Checks whether an op means the same over the field as over the reals, for all operands.
fn is_exact(module: &Verified, id: InstId) -> bool {
    let opcode = module.opcode(id);
    if opcode == Opcode::Convert {
        return has_floats(module.shape(id));
    }
    if matches!(opcode, Opcode::Bitcast | Opcode::BitcastConvert) {
        return false;
    }
    !opcode.is_elementwise()
        || matches!(
            opcode,
            Opcode::Add
                | Opcode::Subtract
                | Opcode::Multiply
                | Opcode::Divide
                | Opcode::Negate
                | Opcode::ReducePrecision
                | Opcode::Select
        )
}

/// Returns the value with the floats whose elements it has, or with none.
fn with_floats(value: Value, floats: Option<Value>) -> Value {
    match (value, floats) {
        (Value::Array(array), Some(Value::Array(floats))) => {
            Value::Array(array.with_floats(Some(Rc::new(floats))))
        }
        (Value::Array(array), _) => Value::Array(array.with_floats(None)),
        (Value::Tuple(elements), _) => {
            let elements = elements.iter().map(|element| with_floats(element.clone(), None));
            Value::Tuple(Rc::new(elements.collect()))
        }
        (Value::Token, _) => Value::Token,
    }
}

/// Returns random elements; zeros for integers, which may be indices.
fn random_data(kept: ElementType, len: usize, key: u64) -> Data {
    if kept == ELEMENT {
        let numbers = 0..u64::try_from(len).unwrap_or(u64::MAX);
        let element = |i| f64::from_bits(random([key, i]) | UNSURE);
        return Data::F64(numbers.map(element).collect());
    }
    Data::zeros(kept, len)
}

/// Returns the words of a value, mixed into one.
fn hash_of(value: &Value) -> u64 {
    match value {
        Value::Array(array) => hash_data(array.data()),
        Value::Tuple(elements) => hash(elements.iter().map(hash_of)),
        Value::Token => 0,
    }
}

fn hash_data(data: &Data) -> u64 {
    if let Data::F64(values) = data {
        return hash(values.iter().map(|value| residue(value.to_bits())));
    }
    let mut hasher = rustc_hash::FxHasher::default();
    data.hash(&mut hasher);
    hasher.finish()
}

/// Returns a value of floats as elements of the field.
pub(super) fn over_field(value: &Value, ledger: &Rc<Ledger>) -> Outcome<Value> {
    match value {
        Value::Array(array) => {
            let kept = Numbers::Field.kept(array.element_type());
            if !array.element_type().is_float() && !array.element_type().is_complex() {
                return Ok(value.clone());
            }
            let charge = ledger.reserve(num_bytes(kept, array.len()))?;
            let data = elements(array.data(), array.element_type())?;
            Array::new(kept, array.dims().into(), data, charge).map(Value::Array)
        }
        Value::Tuple(values) => {
            let values = values.iter().map(|value| over_field(value, ledger));
            Ok(Value::Tuple(Rc::new(values.collect::<Outcome<_>>()?)))
        }
        Value::Token => Ok(Value::Token),
    }
}

/// Returns the value, marked as unsure: elements one by one, other arrays as a whole.
pub(crate) fn mark(value: Value, ledger: &Rc<Ledger>) -> Outcome<Value> {
    match value {
        Value::Array(array) if array.element_type() == ELEMENT => array.modify(ledger, |data| {
            if let Data::F64(values) = data {
                for value in values {
                    *value = f64::from_bits(value.to_bits() | UNSURE);
                }
            }
            Ok(())
        }),
        Value::Array(array) => Ok(Value::Array(array.unsure())),
        Value::Tuple(elements) => {
            let elements = elements.iter().map(|element| mark(element.clone(), ledger));
            Ok(Value::Tuple(Rc::new(elements.collect::<Outcome<_>>()?)))
        }
        Value::Token => Ok(Value::Token),
    }
}

fn is_unsure(value: &Value) -> bool {
    match value {
        Value::Array(array) => array.is_unsure(),
        Value::Tuple(elements) => elements.iter().any(is_unsure),
        Value::Token => false,
    }
}

fn has_unsure_elements(value: &Value) -> bool {
    let Value::Array(array) = value else { return false };
    let Data::F64(values) = array.data() else { return false };
    values.iter().any(|value| marks(value.to_bits()) & UNSURE != 0)
}

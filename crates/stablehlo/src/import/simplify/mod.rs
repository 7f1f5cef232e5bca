//! The simplifications that XLA makes before it converts a program.
//!
//! XLA runs StableHLO's aggressive simplification and folding
//! (`stablehlo/transforms/optimization`), so that for example `x + 0` is `x`, a broadcast of a
//! constant is a constant, and a value that a loop only passes on is used from outside. These
//! are the patterns that matter for what front ends write; they run until none applies.

mod algebra;
mod constants;
mod dead;
mod dynamism;
mod fold;
mod loops;
mod select;
mod shapes;
mod slices;

use std::cell::Cell;
use std::sync::Arc;

pub(super) use constants::{Number, bytes, width};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use smol_str::SmolStr;

use crate::mlir::{
    Attribute, Attributes, Block, DenseArray, DenseElements, Location, Operation, Program, Region,
    Span, TensorType, Type, Value, value_of,
};

/// The largest number of passes over a function.
const MAX_PASSES: usize = 32;

/// The largest number of patterns that apply to one operation in one pass.
const MAX_STEPS: usize = 16;

/// The largest number of elements of all constants that are folded in a program: a small program may ask for many.
const MOST_FOLDED: usize = 1 << 22;

/// Simplifies all functions of a program.
pub(super) fn simplify(program: &Program) -> Program {
    let mut simplifier = Simplifier {
        values: program.values.clone(),
        definitions: FxHashMap::default(),
        replaced: FxHashMap::default(),
        uses: FxHashMap::default(),
        constants: FxHashMap::default(),
        leading: Vec::new(),
        hoisted: Vec::new(),
        elements_left: Cell::new(MOST_FOLDED),
        changed: false,
    };
    let mut module = program.module.clone();
    let blocks = module.regions.iter_mut().flat_map(|region| &mut region.blocks);
    for function in blocks.flat_map(|block| &mut block.operations) {
        simplifier.function(function);
    }
    let argument_locations = program.argument_locations.clone();
    Program { module, values: simplifier.values, argument_locations }
}

/// The operation that defines a value, without its regions.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    name: SmolStr,
    operands: SmallVec<[Value; 4]>,
    attributes: Attributes,
}

/// The result of a pattern on an operation.
pub(super) enum Outcome {
    /// Its results are equal to these values.
    Values(Vec<Value>),
    /// It is replaced by these operations, of which the last has its results.
    Operations(Vec<Operation>),
}

/// A pattern.
type Pattern = fn(&mut Simplifier, &mut Operation) -> Option<Outcome>;

/// All patterns by the operations to which they may apply; an empty name means any.
const PATTERNS: &[&[(&str, Pattern)]] = &[
    algebra::PATTERNS,
    dynamism::PATTERNS,
    fold::PATTERNS,
    loops::PATTERNS,
    select::PATTERNS,
    shapes::PATTERNS,
    slices::PATTERNS,
];

/// The state of the simplification.
pub(super) struct Simplifier {
    values: Vec<Type>,
    definitions: FxHashMap<Value, Arc<Definition>>,
    replaced: FxHashMap<Value, Value>,
    uses: FxHashMap<Value, usize>,
    /// The constants of the function by what they are.
    constants: FxHashMap<constants::Key, Value>,
    /// The constants with which the function begins.
    leading: Vec<Operation>,
    /// The other constants of the function. MLIR puts each new one before all that come first.
    hoisted: Vec<Operation>,
    /// How many elements may still be folded.
    elements_left: Cell<usize>,
    changed: bool,
}

impl Simplifier {
    fn function(&mut self, function: &mut Operation) {
        for _ in 0..MAX_PASSES {
            self.changed = false;
            self.definitions.clear();
            self.constants.clear();
            self.uses = dead::count(function);
            for region in &mut function.regions {
                self.region(region, 0);
                if let Some(block) = region.blocks.first_mut() {
                    let moved = std::mem::take(&mut self.hoisted).into_iter().rev();
                    let constants = moved.chain(std::mem::take(&mut self.leading));
                    block.operations.splice(0..0, constants);
                }
            }
            self.resolve_all(function);
            let removed = dead::remove(function);
            if !self.changed && !removed {
                return;
            }
        }
    }

    fn region(&mut self, region: &mut Region, depth: usize) {
        if depth > super::MAX_DEPTH {
            return;
        }
        for block in &mut region.blocks {
            self.block(block, depth);
        }
    }

    fn block(&mut self, block: &mut Block, depth: usize) {
        let operations = std::mem::take(&mut block.operations);
        let mut out = Vec::with_capacity(operations.len());
        for mut operation in operations {
            self.resolve(&mut operation);
            for region in &mut operation.regions {
                self.region(region, depth + 1);
            }
            if depth == 0
                && out.is_empty()
                && let Some(constant) = self.as_constant(&operation)
            {
                self.hoist(constant, true);
                continue;
            }
            self.operation(operation, &mut out, MAX_STEPS);
        }
        block.operations = out;
    }

    /// Replaces operands by the values that they are equal to.
    fn resolve(&self, operation: &mut Operation) {
        for operand in &mut operation.operands {
            while let Some(&equal) = self.replaced.get(operand) {
                *operand = equal;
            }
        }
    }

    /// Replaces the operands of all operations in a function.
    fn resolve_all(&self, function: &mut Operation) {
        let mut rest = vec![function];
        while let Some(operation) = rest.pop() {
            self.resolve(operation);
            let blocks = operation.regions.iter_mut().flat_map(|region| &mut region.blocks);
            rest.extend(blocks.flat_map(|block| &mut block.operations));
        }
    }

    /// Applies patterns to an operation and adds what is left.
    fn operation(&mut self, mut operation: Operation, out: &mut Vec<Operation>, steps: usize) {
        if let Some(constant) = self.as_constant(&operation) {
            self.hoist(constant, false);
            return;
        }
        let outcome = if steps > 0 { self.step(&mut operation) } else { None };
        self.changed |= outcome.is_some();
        match outcome {
            None => {
                self.define(&operation);
                out.push(operation);
            }
            Some(Outcome::Values(values)) => {
                for (&result, value) in operation.results.iter().zip(values) {
                    self.replace(result, value);
                }
            }
            Some(Outcome::Operations(operations)) => {
                for operation in operations {
                    self.operation(operation, out, steps / 2);
                }
            }
        }
    }

    fn replace(&mut self, result: Value, mut value: Value) {
        while let Some(&equal) = self.replaced.get(&value) {
            value = equal;
        }
        if value != result {
            self.replaced.insert(result, value);
            let uses = self.uses.get(&result).copied().unwrap_or(0);
            *self.uses.entry(value).or_default() += uses;
        }
    }

    fn step(&mut self, operation: &mut Operation) -> Option<Outcome> {
        for list in PATTERNS {
            for (name, pattern) in *list {
                if name.is_empty() || operation.name.strip_prefix("stablehlo.") == Some(name) {
                    let outcome = pattern(self, operation);
                    if outcome.is_some() {
                        return outcome;
                    }
                }
            }
        }
        None
    }

    fn define(&mut self, operation: &Operation) {
        let definition = Arc::new(Definition {
            name: operation.name.clone(),
            operands: operation.operands.clone(),
            attributes: operation.attributes.clone(),
        });
        for &result in &operation.results {
            self.definitions.insert(result, Arc::clone(&definition));
        }
    }

    /// Returns what defines a value, if it is a StableHLO operation of this name.
    fn defined(&self, value: Value, name: &str) -> Option<Arc<Definition>> {
        let definition = self.definitions.get(&value)?;
        (definition.name.strip_prefix("stablehlo.") == Some(name)).then(|| Arc::clone(definition))
    }

    /// Returns the type of a value, if it is a tensor.
    fn tensor(&self, value: Value) -> Option<&TensorType> {
        match self.values.get(usize::try_from(value.0).ok()?)? {
            Type::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Returns the dims of a value, if they are known.
    fn dims(&self, value: Value) -> Option<Vec<i64>> {
        self.tensor(value)?.dims.iter().copied().collect()
    }

    fn same_type(&self, a: Value, b: Value) -> bool {
        match (self.tensor(a), self.tensor(b)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        }
    }

    /// Makes a value of a type.
    fn value(&mut self, ty: Type) -> Value {
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(ty);
        Value(number)
    }

    /// Takes elements off what may still be folded; `false` if there are not as many left.
    fn affords(&self, elements: usize) -> bool {
        let left = self.elements_left.get().checked_sub(elements);
        left.inspect(|&left| self.elements_left.set(left)).is_some()
    }

    /// Checks whether a value is used just once.
    fn has_one_use(&self, value: Value) -> bool {
        self.uses.get(&value) == Some(&1)
    }
}

/// Returns an operation in place of another one, with its results and location.
fn instead(of: &Operation, name: &str, operands: &[Value], attributes: Attributes) -> Operation {
    let mut attributes = attributes;
    let kept = of.attributes.iter().filter(|(name, _)| name.starts_with("mhlo."));
    attributes.extend(kept.cloned());
    Operation {
        name: SmolStr::from(format!("stablehlo.{name}")),
        operands: operands.into(),
        results: of.results.clone(),
        attributes,
        regions: Vec::new(),
        location: of.location.clone(),
        span: of.span,
    }
}

/// Returns an operation in front of another one, with a result of its own.
fn before(
    location: Option<Arc<Location>>,
    span: Span,
    (name, operands): (&str, &[Value]),
    attributes: Attributes,
    result: Value,
) -> Operation {
    Operation {
        name: SmolStr::from(format!("stablehlo.{name}")),
        operands: operands.into(),
        results: std::iter::once(result).collect(),
        attributes,
        regions: Vec::new(),
        location,
        span,
    }
}

/// An attribute that is a list of integers.
fn list(name: &str, values: impl IntoIterator<Item = i64>) -> (SmolStr, Attribute) {
    let values = values.into_iter().collect();
    (name.into(), Attribute::DenseArray(DenseArray::I64(values)))
}

/// Returns the integers of an attribute.
fn integers(attributes: &Attributes, name: &str) -> Option<Vec<i64>> {
    super::attributes::integers(value_of(attributes, name)?)
}

/// As [`integers`]; a missing attribute is an empty list.
fn integers_or_none(attributes: &Attributes, name: &str) -> Option<Vec<i64>> {
    value_of(attributes, name).map_or(Some(Vec::new()), super::attributes::integers)
}

/// Returns one integer of an attribute.
fn integer(attributes: &Attributes, name: &str) -> Option<i64> {
    super::attributes::integer(value_of(attributes, name)?)
}

/// Returns the dense value of a constant.
fn dense(attributes: &Attributes) -> Option<&DenseElements> {
    match value_of(attributes, "value")? {
        Attribute::Dense(dense) => Some(dense),
        _ => None,
    }
}

/// Checks whether dims are 0, 1, 2 ...
fn is_iota(dims: &[i64]) -> bool {
    dims.iter().zip(0..).all(|(&dim, at)| dim == at)
}

/// Returns the number of elements.
fn count(dims: &[i64]) -> Option<i64> {
    tilewright_ir::shape::checked_product(dims)
}

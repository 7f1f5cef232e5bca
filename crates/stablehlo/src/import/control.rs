//! Regions, loops and branches.

use tilewright_ir::ops::control::{ConditionalAttrs, WhileAttrs};
use tilewright_ir::{CompId, InstId, Op, Shape, Sharding};

use super::body::{Body, Returns, Scope};
use super::captures::captured;
use super::error::{Import, ImportError};
use super::{Importer, shardings};
use crate::mlir::{Block, Operation, Region, Value};

/// The parameters and results of a region.
struct Outline<'r> {
    /// The values from outside that are passed after the arguments.
    captured: &'r [Value],
    /// Whether its arguments are one parameter.
    is_single: bool,
    arguments: Vec<Option<Sharding>>,
    returns: Returns<'r>,
}

fn block_of<'p>(operation: &Operation, region: &'p Region) -> Import<&'p Block> {
    match region.blocks.as_slice() {
        [block] => Ok(block),
        blocks => {
            let why = format!("has a region with {} blocks, not one", blocks.len());
            Err(ImportError::malformed(operation, &why))
        }
    }
}

impl<'p> Body<'_, 'p> {
    /// Converts a region whose arguments are parameters, for example of a reduce.
    pub(super) fn region(
        &mut self,
        operation: &'p Operation,
        region: &'p Region,
    ) -> Import<CompId> {
        let (arguments, returns) = (Vec::new(), Returns::default());
        let outline = Outline { captured: &[], is_single: false, arguments, returns };
        self.importer.lower(operation, region, self.computation, &outline)
    }

    /// Returns the values that regions use from outside, but for constants.
    fn captures(&self, regions: &'p [Region]) -> Vec<Value> {
        let mut values = captured(regions.iter());
        values.retain(|value| !self.importer.constants.contains_key(value));
        values
    }

    fn instructions(&self, operation: &Operation, values: &[Value]) -> Import<Vec<InstId>> {
        values.iter().map(|&value| self.value(operation, value)).collect()
    }

    fn shardings_of(&self, ids: &[InstId]) -> Vec<Option<Sharding>> {
        let of = |&id: &InstId| self.importer.module.extras(id)?.sharding.as_deref().cloned();
        ids.iter().map(of).collect()
    }

    /// Converts a branch; returns its computation and its operand.
    fn branch(&mut self, operation: &'p Operation, region: &'p Region) -> Import<(CompId, InstId)> {
        let captured = self.captures(std::slice::from_ref(region));
        let ids = self.instructions(operation, &captured)?;
        let scope = self.scope.clone();
        let results = operation.results.len();
        let of_results = shardings::each(scope.sharding.as_ref(), results);
        let of_operands =
            if of_results.is_empty() && results > 0 { Vec::new() } else { self.shardings_of(&ids) };
        self.scope.sharding = shardings::together(&of_operands);
        let operand = self.together(&ids)?;
        self.scope = scope;
        let returns = Returns { implicit: &[], shardings: of_results };
        let outline =
            Outline { captured: &captured, is_single: true, arguments: of_operands, returns };
        let computation = self.importer.lower(operation, region, self.computation, &outline)?;
        Ok((computation, operand))
    }
}

impl<'p> Importer<'p> {
    /// Converts a region to a computation.
    fn lower(
        &mut self,
        operation: &'p Operation,
        region: &'p Region,
        caller: CompId,
        outline: &Outline<'_>,
    ) -> Import<CompId> {
        let block = block_of(operation, region)?;
        let name = format!("region_{}", self.regions);
        self.regions += 1;
        let computation = self.begin(&name, Some(caller), operation.span)?;
        let mut body = Body::new(self, computation, operation.span);
        body.parameters(operation, block, outline)?;
        body.constants(region)?;
        body.block(block, &outline.returns)?;
        self.end();
        Ok(computation)
    }
}

impl<'p> Body<'_, 'p> {
    /// Adds the parameters of a region and binds its arguments and captured values.
    fn parameters(
        &mut self,
        operation: &Operation,
        block: &Block,
        outline: &Outline<'_>,
    ) -> Import<()> {
        let values: Vec<Value> = block.arguments.iter().chain(outline.captured).copied().collect();
        let shapes = values.iter().map(|&value| self.shape_of(operation, value));
        let mut shapes = shapes.collect::<Import<Vec<Shape>>>()?;
        let sharding = |number: usize| outline.arguments.get(number).cloned().flatten();
        if !outline.is_single || shapes.len() == 1 {
            for (number, (&value, shape)) in values.iter().zip(shapes).enumerate() {
                self.scope.sharding = sharding(number);
                let parameter = self.parameter(number, shape, Some(value))?;
                self.values.insert(value, parameter);
            }
            return Ok(());
        }
        self.scope.sharding = shardings::together(&outline.arguments);
        let tuple = self.parameter(0, Shape::Tuple(std::mem::take(&mut shapes)), None)?;
        for (number, &value) in values.iter().enumerate() {
            self.scope.sharding = sharding(number);
            let element = self.element(tuple, number)?;
            self.values.insert(value, element);
        }
        Ok(())
    }

    /// Adds the constants from outside that a region uses.
    fn constants(&mut self, region: &'p Region) -> Import<()> {
        for value in captured(std::iter::once(region)) {
            if let Some(&constant) = self.importer.constants.get(&value)
                && !self.values.contains_key(&value)
            {
                self.scope = Scope::default();
                self.convert(constant)?;
            }
        }
        Ok(())
    }
}

/// `stablehlo.while`: what its regions use from outside becomes part of the loop's tuple.
pub(crate) fn while_loop<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let [condition, step] = operation.regions.as_slice() else {
        return Err(ImportError::malformed(operation, "has a condition and a body"));
    };
    let captured = body.captures(&operation.regions);
    let implicit = body.instructions(operation, &captured)?;
    let mut shardings = shardings::each(body.scope.sharding.as_ref(), operation.results.len());
    if !implicit.is_empty() && !shardings.is_empty() {
        shardings.extend(body.shardings_of(&implicit));
        body.scope.sharding = shardings::together(&shardings).or(body.scope.sharding.take());
    }
    let scope = body.scope.clone();
    let outline = |implicit, returns: &[_]| Outline {
        captured: &captured,
        is_single: true,
        arguments: shardings.clone(),
        returns: Returns { implicit, shardings: returns.to_vec() },
    };
    let caller = body.computation;
    let step = body.importer.lower(operation, step, caller, &outline(&captured, &shardings))?;
    let condition = body.importer.lower(operation, condition, caller, &outline(&[], &[]))?;
    body.scope = scope;
    let mut operands = body.operands(operation)?;
    operands.extend(implicit);
    let operand = body.together(&operands)?;
    let shape = body.importer.module.shape(operand).clone();
    let is_tuple = operands.len() != 1;
    let op = Op::While(Box::new(WhileAttrs { condition, body: step }));
    let id = body.emit(op, shape, &[operand])?;
    if is_tuple { body.bind_elements(operation, id) } else { body.bind(operation, id) }
}

/// `stablehlo.if`.
pub(crate) fn if_else<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let [on_true, on_false] = operation.regions.as_slice() else {
        return Err(ImportError::malformed(operation, "has two branches"));
    };
    let (true_computation, true_operand) = body.branch(operation, on_true)?;
    let (false_computation, false_operand) = body.branch(operation, on_false)?;
    let attrs = ConditionalAttrs {
        true_computation: Some(true_computation),
        false_computation: Some(false_computation),
        ..ConditionalAttrs::default()
    };
    conditional(body, operation, attrs, &[true_operand, false_operand])
}

/// `stablehlo.case`.
pub(crate) fn case<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let mut attrs = ConditionalAttrs::default();
    let mut operands = Vec::new();
    for region in &operation.regions {
        let (computation, operand) = body.branch(operation, region)?;
        attrs.branch_computations.push(computation);
        operands.push(operand);
    }
    conditional(body, operation, attrs, &operands)
}

fn conditional(
    body: &mut Body<'_, '_>,
    operation: &Operation,
    attrs: ConditionalAttrs,
    branches: &[InstId],
) -> Import<()> {
    let mut operands = body.operands(operation)?;
    operands.extend(branches);
    // The branches may say sizes that the type of the result does not, and the other way round.
    let first = attrs.branch_computations.first().copied().or(attrs.true_computation);
    let module = &body.importer.module;
    let root = first.and_then(|branch| module.computation(branch).root());
    let shape = match root {
        Some(root) => module.shape(root).without_layout(),
        None => body.result_shape(operation)?,
    };
    let id = body.emit(Op::Conditional(Box::new(attrs)), shape, &operands)?;
    body.bind(operation, id)
}

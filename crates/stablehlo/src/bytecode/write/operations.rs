//! Operations, regions and blocks.

use std::sync::Arc;

use smol_str::{SmolStr, format_smolstr};

use super::super::error::WriteError;
use super::emitter::Emitter;
use super::{Format, Writer};
use crate::mlir::{Block, Location, Operation, Region, Value};
use crate::vhlo::VersionedOp;

/// Operations whose regions do not see the values around them.
const ISOLATED: &[&str] = &["builtin.module", "func.func"];

/// Regions may be nested this deep.
const MAX_DEPTH: u32 = 64;

/// A cast between types of different dialects.
const CAST: &str = "builtin.unrealized_conversion_cast";

/// The region that is being written.
#[derive(Default)]
struct Scope {
    /// The number of the next value.
    next: u64,
    /// The number after the last value of the region.
    end: u64,
    depth: u32,
    defined: Vec<Value>,
}

impl Scope {
    fn take(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

type Written = Result<(), WriteError>;

impl Writer<'_> {
    /// Writes the outermost operation.
    pub(super) fn outermost(&mut self) -> Result<Emitter, WriteError> {
        let mut emitter = Emitter::default();
        emitter.flagged(1, false);
        let program = self.program;
        self.operation(&program.module, &mut Scope::default(), &mut emitter)?;
        Ok(emitter)
    }

    /// Writes an operation, and casts of the operands and results of an operation that has other
    /// types than VHLO's.
    fn operation(&mut self, operation: &Operation, scope: &mut Scope, to: &mut Emitter) -> Written {
        let error = |message: String| WriteError { operation: operation.name.to_string(), message };
        if scope.depth > MAX_DEPTH {
            return Err(error("regions are nested too deeply".into()));
        }
        let foreign = self.is_foreign(operation);
        let mut operands = Vec::with_capacity(operation.operands.len());
        for operand in &operation.operands {
            let number = self.values.get(operand).copied();
            let missing = || error(format!("it uses {operand:?} before it is made"));
            let number = number.ok_or_else(missing)?;
            operands.push(match foreign {
                true => self.cast(number, *operand, Format::Plain, scope, to).map_err(error)?,
                false => number,
            });
        }
        self.head(operation, &operands, to).map_err(error)?;
        if !operation.regions.is_empty() {
            self.regions(operation, scope, to)?;
        }
        let first = scope.next;
        if foreign {
            scope.next += operation.results.len() as u64;
        }
        for (number, result) in (first..).zip(&operation.results) {
            let number = match foreign {
                true => self.cast(number, *result, self.format, scope, to).map_err(error)?,
                false => scope.take(),
            };
            self.values.insert(*result, number);
            scope.defined.push(*result);
        }
        Ok(())
    }

    /// Checks whether a portable artifact has an operation with the types of other dialects.
    fn is_foreign(&self, operation: &Operation) -> bool {
        let dialect = operation.name.split_once('.').map_or("", |(dialect, _)| dialect);
        self.format != Format::Plain && !matches!(dialect, "stablehlo" | "func" | "builtin")
    }

    /// Writes a cast of a value to the types of a format, and returns the number of the result.
    fn cast(
        &mut self,
        number: u64,
        value: Value,
        format: Format,
        scope: &mut Scope,
        to: &mut Emitter,
    ) -> super::types::Encoded {
        let program = self.program;
        let ty = program.type_of(value).ok_or_else(|| format!("{value:?} has no type"))?;
        to.varint(self.tables.names.of(&SmolStr::new_static(CAST)));
        to.byte(2 | 4);
        to.varint(self.location(&Arc::new(Location::Unknown))?);
        to.count(1);
        to.varint(self.ty(ty, format)?);
        to.count(1);
        to.varint(number);
        Ok(scope.take())
    }

    fn regions(&mut self, operation: &Operation, scope: &Scope, to: &mut Emitter) -> Written {
        let isolated = ISOLATED.contains(&operation.name.as_str());
        let foreign = self.is_foreign(operation);
        to.flagged(operation.regions.len() as u64, isolated);
        if !isolated {
            for region in &operation.regions {
                self.region(region, foreign, (scope.end, scope.depth), to)?;
            }
            return Ok(());
        }
        let outer = std::mem::take(&mut self.values);
        let mut part = Emitter::default();
        for region in &operation.regions {
            self.region(region, foreign, (0, scope.depth), &mut part)?;
        }
        self.values = outer;
        to.section(4, &part);
        Ok(())
    }

    /// Everything of an operation but its regions.
    fn head(
        &mut self,
        operation: &Operation,
        operands: &[u64],
        to: &mut Emitter,
    ) -> Result<(), String> {
        let plan = self.plan(operation)?;
        let (name, format) = match &plan {
            Some(plan) => (format_smolstr!("vhlo.{}", plan.name()), self.format),
            None => (operation.name.clone(), Format::Plain),
        };
        let converted;
        let attributes = match &plan {
            Some(plan) => {
                converted = plan.attributes(&operation.attributes)?;
                &converted
            }
            None => &operation.attributes,
        };
        to.varint(self.tables.names.of(&name));
        let parts = [
            (!attributes.is_empty(), 1),
            (!operation.results.is_empty(), 2),
            (!operands.is_empty(), 4),
            (!operation.regions.is_empty(), 16),
        ];
        to.byte(parts.iter().filter(|(present, _)| *present).map(|(_, bit)| bit).sum());
        let unknown = Arc::new(Location::Unknown);
        to.varint(self.location(operation.location.as_ref().unwrap_or(&unknown))?);
        if !attributes.is_empty() {
            to.varint(self.dictionary(attributes, format)?);
        }
        if !operation.results.is_empty() {
            to.count(operation.results.len());
            for result in &operation.results {
                to.varint(self.type_of(*result, format)?);
            }
        }
        if !operands.is_empty() {
            to.count(operands.len());
            operands.iter().for_each(|operand| to.varint(*operand));
        }
        Ok(())
    }

    /// Returns the operation of VHLO that is written; `None` if the operation is written as it is.
    fn plan(&mut self, operation: &Operation) -> Result<Option<Arc<VersionedOp>>, String> {
        let Format::Portable(version) = self.format else { return Ok(None) };
        if !operation.name.starts_with("stablehlo.") && !operation.name.starts_with("func.") {
            return Ok(None);
        }
        let of = (version.major, version.minor);
        let make = || VersionedOp::of(&operation.name, of).map(Arc::new);
        let plan = self.plans.entry(operation.name.clone()).or_insert_with(make).clone();
        let plan = plan.ok_or_else(|| format!("StableHLO {version} has no such operation"))?;
        plan.check(operation, of)?;
        Ok(Some(plan))
    }

    fn type_of(&mut self, value: Value, format: Format) -> super::types::Encoded {
        let program = self.program;
        let ty = program.type_of(value).ok_or_else(|| format!("{value:?} has no type"))?;
        self.ty(ty, format)
    }

    /// Returns the numbers of operations and of values that a block becomes.
    fn size(&self, block: &Block, foreign: bool) -> (usize, usize) {
        let arguments = block.arguments.len();
        let casts = if foreign { arguments } else { 0 };
        block.operations.iter().fold(
            (casts, arguments + casts),
            |(operations, values), operation| {
                let results = operation.results.len();
                let casts =
                    if self.is_foreign(operation) { operation.operands.len() + results } else { 0 };
                (operations + 1 + casts, values + results + casts)
            },
        )
    }

    /// Writes a region whose values begin at `base`.
    fn region(
        &mut self,
        region: &Region,
        foreign: bool,
        (base, depth): (u64, u32),
        to: &mut Emitter,
    ) -> Written {
        to.count(region.blocks.len());
        if region.blocks.is_empty() {
            return Ok(());
        }
        let count: usize = region.blocks.iter().map(|block| self.size(block, foreign).1).sum();
        to.count(count);
        let end = base + count as u64;
        let mut scope = Scope { next: base, end, depth: depth + 1, defined: Vec::new() };
        for block in &region.blocks {
            to.flagged(self.size(block, foreign).0 as u64, !block.arguments.is_empty());
            self.arguments(&block.arguments, foreign, &mut scope, to)?;
            for operation in &block.operations {
                self.operation(operation, &mut scope, to)?;
            }
        }
        for value in scope.defined {
            self.values.remove(&value);
        }
        Ok(())
    }

    fn arguments(
        &mut self,
        arguments: &[Value],
        foreign: bool,
        scope: &mut Scope,
        to: &mut Emitter,
    ) -> Written {
        if arguments.is_empty() {
            return Ok(());
        }
        let error = |message| WriteError { operation: "an argument of a block".into(), message };
        let format = if foreign { Format::Plain } else { self.format };
        to.count(arguments.len());
        let program = self.program;
        let first = scope.next;
        for argument in arguments {
            let ty = self.type_of(*argument, format).map_err(error)?;
            let location = program.argument_locations.get(argument);
            to.flagged(ty, location.is_some());
            if let Some(location) = location {
                to.varint(self.location(location).map_err(error)?);
            }
            let number = scope.take();
            self.values.insert(*argument, number);
            scope.defined.push(*argument);
        }
        // No orders of uses follow.
        to.byte(0);
        if foreign {
            for (number, argument) in (first..).zip(arguments) {
                let cast = self.cast(number, *argument, self.format, scope, to).map_err(error)?;
                self.values.insert(*argument, cast);
            }
        }
        Ok(())
    }
}

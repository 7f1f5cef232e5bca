//! Operations, regions and blocks.

use std::sync::Arc;

use smol_str::{SmolStr, format_smolstr};

use super::super::error::WriteError;
use super::emitter::Emitter;
use super::{Format, Writer};
use crate::mlir::{Attribute, Block, Location, Operation, Region, Value};
use crate::vhlo::Plan;

/// Operations whose regions do not see the values around them.
const ISOLATED: &[&str] = &["builtin.module", "func.func"];

/// Regions may be nested this deep.
const MAX_DEPTH: u32 = 64;

type Written = Result<(), WriteError>;

impl Writer<'_> {
    /// Writes the outermost operation.
    pub(super) fn outermost(&mut self) -> Result<Emitter, WriteError> {
        let mut emitter = Emitter::default();
        emitter.flagged(1, false);
        let program = self.program;
        self.operation(&program.module, (0, 0), &mut emitter)?;
        Ok(emitter)
    }

    /// Writes an operation in a region whose values end before `end`.
    fn operation(&mut self, operation: &Operation, place: (u64, u32), to: &mut Emitter) -> Written {
        let error = |message: String| WriteError { operation: operation.name.to_string(), message };
        if place.1 > MAX_DEPTH {
            return Err(error("regions are nested too deeply".into()));
        }
        let head = self.head(operation).map_err(error)?;
        to.bytes.extend_from_slice(&head.bytes);
        if !operation.regions.is_empty() {
            let isolated = ISOLATED.contains(&operation.name.as_str());
            to.flagged(operation.regions.len() as u64, isolated);
            if isolated {
                let outer = std::mem::take(&mut self.values);
                let mut part = Emitter::default();
                for region in &operation.regions {
                    self.region(region, (0, place.1 + 1), &mut part)?;
                }
                self.values = outer;
                to.section(4, &part);
            } else {
                for region in &operation.regions {
                    self.region(region, (place.0, place.1 + 1), to)?;
                }
            }
        }
        Ok(())
    }

    /// Everything of an operation but its regions.
    fn head(&mut self, operation: &Operation) -> Result<Emitter, String> {
        let mut to = Emitter::default();
        let plan = self.plan(operation)?;
        let (name, format) = match &plan {
            Some(plan) => (format_smolstr!("vhlo.{}", plan.name()), self.format),
            None => (operation.name.clone(), Format::Plain),
        };
        to.varint(self.tables.names.of(&name));
        let parts = [
            (!operation.attributes.is_empty() || plan.is_some(), 1),
            (!operation.results.is_empty(), 2),
            (!operation.operands.is_empty(), 4),
            (!operation.regions.is_empty(), 16),
        ];
        to.byte(parts.iter().filter(|(present, _)| *present).map(|(_, bit)| bit).sum());
        let unknown = Arc::new(Location::Unknown);
        to.varint(self.location(operation.location.as_ref().unwrap_or(&unknown))?);
        match &plan {
            Some(plan) => {
                let attributes = plan.attributes(&operation.attributes)?;
                to.varint(self.dictionary(&attributes, format)?);
            }
            None if !operation.attributes.is_empty() => {
                to.varint(self.dictionary(&operation.attributes, format)?);
            }
            None => {}
        }
        if !operation.results.is_empty() {
            to.count(operation.results.len());
            for result in &operation.results {
                to.varint(self.type_of(*result)?);
            }
        }
        if !operation.operands.is_empty() {
            to.count(operation.operands.len());
            for operand in &operation.operands {
                let number = self.values.get(operand).copied();
                to.varint(number.ok_or_else(|| format!("it uses {operand:?} before it is made"))?);
            }
        }
        Ok(to)
    }

    /// Returns the operation of VHLO that is written; `None` if the operation is written as it is.
    fn plan(&mut self, operation: &Operation) -> Result<Option<Arc<Plan>>, String> {
        let Format::Portable(version) = self.format else { return Ok(None) };
        let base: SmolStr = match operation.name.split_once('.') {
            Some(("stablehlo" | "func", base)) => base.into(),
            _ => return Ok(None),
        };
        let make = || Plan::of(&base, (version.major, version.minor)).map(Arc::new);
        let plan = self.plans.entry(base.clone()).or_insert_with(make).clone();
        let plan = plan.ok_or_else(|| format!("StableHLO {version} has no such operation"))?;
        let only_one = matches!(
            plan.name(),
            "all_gather_v1" | "all_reduce_v1" | "all_to_all_v1" | "collective_broadcast_v1"
        );
        if only_one && operation.operands.len() != 1 {
            return Err(format!("StableHLO {version} has it with one operand only"));
        }
        if plan.name() == "composite_v1" && !operation.regions.is_empty() {
            return Err(format!("StableHLO {version} has it without regions only"));
        }
        Ok(Some(plan))
    }

    fn type_of(&mut self, value: Value) -> Result<u64, String> {
        let program = self.program;
        let ty = program.type_of(value).ok_or_else(|| format!("{value:?} has no type"))?;
        self.ty(ty, self.format)
    }

    fn region(&mut self, region: &Region, (base, depth): (u64, u32), to: &mut Emitter) -> Written {
        to.count(region.blocks.len());
        if region.blocks.is_empty() {
            return Ok(());
        }
        let made = |block: &Block| -> usize {
            let results = block.operations.iter().map(|operation| operation.results.len());
            block.arguments.len() + results.sum::<usize>()
        };
        let count: u64 = region.blocks.iter().map(|block| made(block) as u64).sum();
        to.varint(count);
        let end = base + count;
        let mut next = base;
        let mut defined = Vec::new();
        for block in &region.blocks {
            to.flagged(block.operations.len() as u64, !block.arguments.is_empty());
            for argument in &block.arguments {
                self.values.insert(*argument, next);
                defined.push(*argument);
                next += 1;
            }
            self.arguments(&block.arguments, to)?;
            for operation in &block.operations {
                self.operation(operation, (end, depth), to)?;
                for result in &operation.results {
                    self.values.insert(*result, next);
                    defined.push(*result);
                    next += 1;
                }
            }
        }
        for value in defined {
            self.values.remove(&value);
        }
        Ok(())
    }

    fn arguments(&mut self, arguments: &[Value], to: &mut Emitter) -> Written {
        if arguments.is_empty() {
            return Ok(());
        }
        let error = |message| WriteError { operation: "an argument of a block".into(), message };
        to.count(arguments.len());
        let program = self.program;
        for argument in arguments {
            let ty = self.type_of(*argument).map_err(error)?;
            let location = program.argument_locations.get(argument);
            to.flagged(ty, location.is_some());
            if let Some(location) = location {
                to.varint(self.location(location).map_err(error)?);
            }
        }
        // No orders of uses follow.
        to.byte(0);
        Ok(())
    }

    /// Returns the number of the dictionary of an operation's attributes. Its names are strings of
    /// MLIR's own dialect in portable artifacts, too.
    fn dictionary(&mut self, attributes: &[(SmolStr, Attribute)], format: Format) -> super::types::Encoded {
        let mut to = Emitter::default();
        to.varint(crate::bytecode::builtin::code::DICTIONARY);
        let mut sorted: Vec<_> = attributes.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        to.count(sorted.len());
        for (name, value) in sorted {
            to.varint(self.name(name));
            to.varint(self.attribute(value, format)?);
        }
        Ok(self.intern("builtin", to))
    }
}

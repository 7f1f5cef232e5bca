//! Rewrites the operations of functions.

use smol_str::SmolStr;
use tilewright_ir::ops::control::CustomCallAttrs;
use tilewright_ir::sdy::Meshes;

use super::super::error::{Import, ImportError};
use super::meshes::{MeshNames, inner};
use super::placement::{of_results, older};
use super::{add_frontend, custom_call};
use crate::limits::MAX_DEPTH;
use crate::mlir::{
    Attribute, Attributes, Block, FunctionType, Operation, Region, Type, Value, value_of,
};

const SHARDING: &str = "sdy.sharding";
const FRONTEND_SHARDING: &str = "xla.sdy.sharding";

/// The state of the rewrite.
pub(super) struct Rewriter<'n> {
    names: &'n MeshNames,
    meshes: Meshes,
    values: Vec<Type>,
    /// The functions that bodies of manual computations become.
    functions: Vec<Operation>,
}

impl<'n> Rewriter<'n> {
    pub(super) fn new(names: &'n MeshNames, values: Vec<Type>) -> Self {
        let meshes = tilewright_ir::sdy::meshes(&names.dictionary()).unwrap_or_default();
        Self { names, meshes, values, functions: Vec::new() }
    }

    pub(super) fn finish(self) -> Vec<Type> {
        self.values
    }

    /// Rewrites the outermost block: its functions, without the meshes.
    pub(super) fn top(&mut self, block: &mut Block) -> Import<()> {
        for operation in &mut block.operations {
            if operation.name == "func.func" {
                self.function(operation)?;
            }
        }
        block.operations.append(&mut self.functions);
        Ok(())
    }

    fn function(&mut self, function: &mut Operation) -> Import<()> {
        let mut of_results = Vec::new();
        for (name, attribute) in &mut function.attributes {
            let Attribute::Array(entries) = attribute else { continue };
            for entry in entries.iter_mut() {
                let Attribute::Dictionary(entry) = entry else { continue };
                let sharding = self.taken(entry);
                if name == "arg_attrs"
                    && let Some(text) = &sharding
                {
                    add_frontend(
                        entry,
                        (FRONTEND_SHARDING.into(), format!("#sdy.sharding<{text}>")),
                    );
                }
                if name == "res_attrs" {
                    of_results.push(sharding);
                }
            }
        }
        for block in function.regions.iter_mut().flat_map(|region| &mut region.blocks) {
            self.block(block, 0)?;
            self.returned(block, &of_results)?;
        }
        Ok(())
    }

    /// Removes the sharding of a value from attributes and returns its text.
    fn taken(&self, attributes: &mut Attributes) -> Option<String> {
        let at = attributes.iter().position(|(name, _)| name == SHARDING)?;
        let (_, sharding) = attributes.remove(at);
        Some(self.names.renamed(&inner(&sharding)?))
    }

    /// Adds a custom call for each result of a function that has a sharding.
    fn returned(&mut self, block: &mut Block, shardings: &[Option<String>]) -> Import<()> {
        let Some(mut end) = block.operations.pop() else { return Ok(()) };
        for (at, sharding) in shardings.iter().enumerate() {
            let (Some(sharding), Some(&operand)) = (sharding, end.operands.get(at)) else {
                continue;
            };
            let result = self.copy(operand);
            let made = block.operations.iter().rev().find(|op| op.results.contains(&operand));
            let mut call = custom_call(
                made.unwrap_or(&end),
                "xla.sdy.FuncResultSharding",
                (&[operand], &[result]),
                true,
            );
            add_frontend(&mut call.attributes, per_value(sharding));
            if let Some(operand) = end.operands.get_mut(at) {
                *operand = result;
            }
            block.operations.push(call);
        }
        block.operations.push(end);
        Ok(())
    }

    fn block(&mut self, block: &mut Block, depth: usize) -> Import<()> {
        let mut out = Vec::with_capacity(block.operations.len());
        for mut operation in std::mem::take(&mut block.operations) {
            if depth > MAX_DEPTH {
                return Err(ImportError::unsupported(&operation, "is nested too deeply"));
            }
            for inner in operation.regions.iter_mut().flat_map(|region| &mut region.blocks) {
                self.block(inner, depth + 1)?;
            }
            self.shard(&mut operation);
            Self::rule(&mut operation);
            self.groups(&mut operation);
            match operation.name.as_str() {
                "sdy.sharding_constraint" | "sdy.reshard" => out.push(self.constraint(&operation)?),
                "sdy.manual_computation" => self.manual(operation, &mut out)?,
                "sdy.sharding_group" => {
                    out.push(hint(
                        &operation,
                        "xla.sdy.ShardingGroup",
                        "group_id",
                        "sharding_group_id",
                    )?);
                }
                "sdy.propagation_barrier" => {
                    let name = "allowed_direction";
                    out.push(hint(&operation, "xla.sdy.PropagationBarrier", name, name)?);
                }
                _ => out.push(operation),
            }
        }
        block.operations = out;
        Ok(())
    }

    /// Makes the sharding of an operation's results a frontend attribute.
    fn shard(&self, operation: &mut Operation) {
        let at = operation.attributes.iter().position(|(name, _)| name == SHARDING);
        let Some(at) = at else { return };
        let (_, sharding) = operation.attributes.remove(at);
        let text = self.names.renamed(&crate::print::attribute(&sharding));
        if let Some(older) = of_results(&self.meshes, &text, operation.results.len()) {
            let older = Attribute::String(older.into_bytes().into());
            operation.attributes.push(("mhlo.sharding".into(), older));
        }
        add_frontend(&mut operation.attributes, (FRONTEND_SHARDING.into(), text));
    }

    /// Makes the rule by which shardings go through an operation a frontend attribute.
    fn rule(operation: &mut Operation) {
        let at = operation.attributes.iter().position(|(name, _)| name == "sdy.sharding_rule");
        let Some(at) = at else { return };
        let (_, rule) = operation.attributes.remove(at);
        let rule = ("xla.sdy.sharding_rule".into(), crate::print::attribute(&rule));
        add_frontend(&mut operation.attributes, rule);
    }

    /// Gives groups of devices the name of the mesh that is kept.
    fn groups(&self, operation: &mut Operation) {
        let groups = operation.attributes.iter_mut().find(|(name, _)| name == "replica_groups");
        let Some((_, Attribute::Dialect(groups))) = groups else { return };
        for (_, value) in &mut groups.parameters {
            if let Attribute::Symbol(path) = value
                && let Some(name) = path.first_mut()
            {
                let renamed = self.names.renamed(&format!("@{name}"));
                *name = renamed.trim_start_matches('@').into();
            }
        }
    }

    fn constraint(&self, operation: &Operation) -> Import<Operation> {
        let sharding = operation.attribute("sharding").and_then(inner);
        let sharding =
            sharding.ok_or_else(|| ImportError::malformed(operation, "has no sharding"))?;
        let ends = (&operation.operands[..], &operation.results[..]);
        let mut call = custom_call(operation, "Sharding", ends, false);
        let (name, text) = per_value(&self.names.renamed(&sharding));
        if let Some(older) = older(&self.meshes, &text) {
            let older = Attribute::String(older.into_bytes().into());
            call.attributes.push(("mhlo.sharding".into(), older));
        }
        add_frontend(&mut call.attributes, (name, text));
        Ok(call)
    }

    /// The body becomes a function, which is called between two changes of shape.
    fn manual(&mut self, mut operation: Operation, out: &mut Vec<Operation>) -> Import<()> {
        let text = |name: &str| -> Import<String> {
            let attribute = operation.attribute(name);
            let attribute =
                attribute.ok_or_else(|| super::super::attributes::missing(&operation, name))?;
            Ok(self.names.renamed(&crate::print::attribute(attribute)))
        };
        let axes: (SmolStr, String) = ("xla.sdy.manual_axes".into(), text("manual_axes")?);
        let inside = ("xla.sdy.in_shardings".into(), text("in_shardings")?);
        let outside = ("xla.sdy.out_shardings".into(), text("out_shardings")?);
        let mut regions = std::mem::take(&mut operation.regions);
        let block = regions.first_mut().and_then(|region| region.blocks.first_mut());
        let block = block.ok_or_else(|| ImportError::malformed(&operation, "has no body"))?;
        let returned = block.operations.last().map(|end| end.operands.clone()).unwrap_or_default();
        let arguments: Vec<Value> = block.arguments.iter().map(|&value| self.copy(value)).collect();
        let results: Vec<Value> = returned.iter().map(|&value| self.copy(value)).collect();
        let name = self.body_name();
        self.functions.push(self.body(&operation, &name, std::mem::take(block), &returned));
        if !arguments.is_empty() {
            let ends = (&operation.operands[..], &arguments[..]);
            let mut call = custom_call(&operation, CustomCallAttrs::TO_SHARDS, ends, true);
            add_frontend(&mut call.attributes, inside);
            add_frontend(&mut call.attributes, axes.clone());
            out.push(call);
        }
        out.push(called(&operation, &name, &arguments, &results));
        if !results.is_empty() {
            let ends = (&results[..], &operation.results[..]);
            let mut call = custom_call(&operation, CustomCallAttrs::TO_WHOLES, ends, true);
            add_frontend(&mut call.attributes, axes);
            add_frontend(&mut call.attributes, outside);
            out.push(call);
        }
        Ok(())
    }

    fn body_name(&self) -> SmolStr {
        let stem = "xla.sdy.manual_computation_body";
        match self.functions.len() {
            0 => stem.into(),
            number => format!("{stem}_{}", number - 1).into(),
        }
    }

    fn body(&self, of: &Operation, name: &str, block: Block, returned: &[Value]) -> Operation {
        let types = |values: &[Value]| values.iter().filter_map(|&value| self.ty(value)).collect();
        let (inputs, results) = (types(&block.arguments), types(returned));
        let ty = Type::Function(FunctionType { inputs, results });
        Operation {
            name: "func.func".into(),
            operands: smallvec::SmallVec::new(),
            results: smallvec::SmallVec::new(),
            attributes: vec![
                ("function_type".into(), Attribute::Type(Box::new(ty))),
                ("sym_name".into(), Attribute::String(name.as_bytes().into())),
            ],
            regions: vec![Region { blocks: vec![block] }],
            location: of.location.clone(),
            span: of.span,
        }
    }

    fn ty(&self, value: Value) -> Option<Type> {
        self.values.get(usize::try_from(value.0).ok()?).cloned()
    }

    /// Makes a value of the type of another one.
    fn copy(&mut self, like: Value) -> Value {
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(self.ty(like).unwrap_or(Type::None));
        Value(number)
    }
}

/// A custom call that tells Shardy's propagation something, with an attribute of the operation.
fn hint(of: &Operation, target: &str, from: &str, to: &str) -> Import<Operation> {
    let value = of.attribute(from).ok_or_else(|| super::super::attributes::missing(of, from))?;
    let mut call = custom_call(of, target, (&of.operands, &of.results), true);
    let text = crate::print::attribute(value);
    add_frontend(&mut call.attributes, (format!("xla.sdy.{to}").into(), text));
    Ok(call)
}

fn per_value(sharding: &str) -> (SmolStr, String) {
    (FRONTEND_SHARDING.into(), format!("#sdy.sharding_per_value<[<{sharding}>]>"))
}

fn called(of: &Operation, name: &str, operands: &[Value], results: &[Value]) -> Operation {
    let callee = Attribute::Symbol(std::iter::once(SmolStr::new(name)).collect());
    let mut attributes = vec![("callee".into(), callee)];
    add_frontend(&mut attributes, ("inlineable".into(), "xla_late".into()));
    if let Some(sharding) = value_of(&of.attributes, "mhlo.sharding") {
        attributes.push(("mhlo.sharding".into(), sharding.clone()));
    }
    Operation {
        name: "func.call".into(),
        operands: operands.into(),
        results: results.into(),
        attributes,
        regions: Vec::new(),
        location: of.location.clone(),
        span: of.span,
    }
}

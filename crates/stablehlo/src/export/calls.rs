//! Computations as functions.

use smol_str::SmolStr;
use tilewright_ir::sharding::LeafSharding;
use tilewright_ir::{CompId, Op, Shape, Sharding};

use super::error::{Export, ExportError, ExportErrorKind};
use super::{Exporter, arguments, locations, operation, types};
use crate::mlir::{Attribute, Attributes, FunctionType, Region, Type, Value};

impl Exporter<'_> {
    /// Adds the function of a computation.
    pub(super) fn function(&mut self, computation: CompId, name: &str) -> Export<()> {
        let module = self.module;
        let computed = module.computation(computation);
        let mut arguments: Vec<Value> = Vec::new();
        let mut parameters = Vec::new();
        let mut of_arguments = Vec::new();
        for &parameter in computed.parameters() {
            let shape = module.shape(parameter);
            let Some(values) = self.values_of(shape) else {
                return Err(ExportError {
                    kind: ExportErrorKind::Unsupported,
                    instruction: module.name_of(parameter).into(),
                    message: "a buffer, an opaque value or `s1` cannot be an argument".into(),
                    others: Vec::new(),
                });
            };
            let leaves = values.leaves();
            let mut attributes =
                module.extras(parameter).map(arguments::of_one).unwrap_or_default();
            if leaves.len() != 1 {
                attributes.clear();
            }
            of_arguments.extend(leaves.iter().map(|_| Attribute::Dictionary(attributes.clone())));
            let location = module.metadata(parameter).and_then(|m| locations::location(module, m));
            for &leaf in &leaves {
                if let Some(location) = &location {
                    self.argument_locations.insert(leaf, location.clone());
                }
            }
            arguments.extend(leaves);
            parameters.push(values);
        }
        self.replicate(computation, &mut of_arguments);
        let is_entry = module.entry() == Some(computation);
        if is_entry {
            self.donate(&mut of_arguments);
        }
        let inputs = arguments.iter().filter_map(|value| self.type_of(*value)).collect();
        let results = computed.root().map(|root| module.shape(root).clone());
        let results = results.as_ref().map(Shape::leaves).unwrap_or_default();
        let results = results.into_iter().filter_map(types::ty).collect();
        let ty = Type::Function(FunctionType { inputs, results });
        let block = self.block(computation, arguments, parameters, "func.return")?;
        let has_attributes = of_arguments.iter().any(|a| *a != Attribute::Dictionary(Vec::new()));
        let mut attributes = Attributes::new();
        if has_attributes {
            attributes.push(("arg_attrs".into(), Attribute::Array(of_arguments)));
        }
        attributes.push(("function_type".into(), Attribute::Type(Box::new(ty))));
        attributes.extend(self.result_shardings(computation));
        attributes.push(super::forms::text("sym_name", name));
        if let Some(thread) = computed.execution_thread() {
            attributes.push(super::forms::text("execution_thread", thread));
        }
        let visibility = if is_entry { "public" } else { "private" };
        attributes.push(super::forms::text("sym_visibility", visibility));
        let mut function = operation("func.func", attributes);
        function.regions.push(Region { blocks: vec![block] });
        self.functions.push(function);
        Ok(())
    }

    /// Marks the arguments whose buffers a compilation may use for results.
    fn donate(&self, of_arguments: &mut [Attribute]) {
        for (parameter, part) in &self.module.header.buffer_donors {
            let number = arguments::argument(self.module, *parameter, part);
            let argument =
                number.and_then(|number| of_arguments.get_mut(usize::try_from(number).ok()?));
            if let Some(Attribute::Dictionary(attributes)) = argument {
                attributes.push(("jax.buffer_donor".into(), Attribute::Bool(true)));
                attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
        }
    }

    /// Returns the shardings of a `tuple`'s parts: it is no operation that could have them.
    fn result_shardings(&self, computation: CompId) -> Option<(SmolStr, Attribute)> {
        let root = self.module.computation(computation).root()?;
        let sharding = self.module.extras(root)?.sharding.as_deref()?;
        let (Op::Tuple, Sharding::Tuple(all)) = (self.module.op(root), sharding) else {
            return None;
        };
        let parts = self.module.shape(root).leaves().len();
        let each = |one: &LeafSharding| {
            Attribute::Dictionary(vec![arguments::sharding(&Sharding::Leaf(one.clone()))])
        };
        (all.len() == parts)
            .then(|| ("res_attrs".into(), Attribute::Array(all.iter().map(each).collect())))
    }

    /// Adds what parameters say of replication, if each is one argument.
    fn replicate(&self, computation: CompId, of_arguments: &mut [Attribute]) {
        let parameters = self.module.computation(computation).parameters();
        if parameters.len() != of_arguments.len() {
            return;
        }
        for (&parameter, attributes) in parameters.iter().zip(of_arguments) {
            let Some(extras) = self.module.extras(parameter) else { continue };
            let all = extras.parameter_replication.iter().map(|&same| Attribute::Bool(same));
            let all: Vec<Attribute> = all.collect();
            if let (Attribute::Dictionary(attributes), false) = (attributes, all.is_empty()) {
                attributes.push(("mhlo.parameter_replication".into(), Attribute::Array(all)));
            }
        }
    }

    pub(super) fn type_of(&self, value: Value) -> Option<Type> {
        self.values.get(usize::try_from(value.0).ok()?).cloned()
    }

    /// Returns the name of the function of a computation, which is added later.
    pub(super) fn name_of(&mut self, computation: CompId) -> SmolStr {
        if let Some(name) = self.function_names.get(&computation) {
            return name.clone();
        }
        let stem = self.module.computation(computation).name();
        let mut name = SmolStr::new(stem);
        let mut number = 0usize;
        while !self.names.insert(name.clone()) {
            number += 1;
            name = format!("{stem}_{number}").into();
        }
        self.add_function(computation, name.clone());
        name
    }

    /// Notes that a computation becomes a function.
    pub(super) fn add_function(&mut self, computation: CompId, name: SmolStr) {
        self.called.push(computation);
        self.function_names.insert(computation, name);
    }
}

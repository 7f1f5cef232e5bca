//! The names of values, by MLIR's rules: `%arg0`, `%cst`, `%3`, `%4#1`.

use rustc_hash::FxHashSet;
use smol_str::{SmolStr, format_smolstr};

use super::MAX_DEPTH;
use crate::mlir::{Block, Operation, Program, Region, Scalar, Type, Value};

/// The names of all values of a program, by their numbers.
pub(super) struct Names(Vec<Option<Name>>);

/// A name without `%`, and which of several results with this name a value is.
#[derive(Clone)]
struct Name {
    base: SmolStr,
    number: Option<usize>,
}

impl Names {
    /// Gives names to all values.
    pub(super) fn of(program: &Program) -> Self {
        let names = vec![None; program.values.len()];
        let mut namer = Namer { names, program, ids: Ids::default(), used: FxHashSet::default() };
        namer.results(&program.module, &mut Vec::new());
        namer.nested(&program.module, 0);
        Self(namer.names)
    }

    /// Writes a value as an operand.
    pub(super) fn push(&self, out: &mut String, value: Value) {
        match self.get(value) {
            Some(Name { base, number: None }) => out.push_str(&format!("%{base}")),
            Some(Name { base, number: Some(number) }) => {
                out.push_str(&format!("%{base}#{number}"));
            }
            // Only a program that is not valid uses a value that has no place.
            None => out.push_str(&format!("%unknown{}", value.0)),
        }
    }

    /// Writes the results of an operation before the `=`.
    pub(super) fn push_results(&self, out: &mut String, results: &[Value]) {
        let Some((&first, rest)) = results.split_first() else { return };
        match self.get(first) {
            Some(Name { base, number: Some(0) }) => {
                out.push_str(&format!("%{base}:{}", results.len()));
            }
            _ => {
                self.push(out, first);
                for &result in rest {
                    out.push_str(", ");
                    self.push(out, result);
                }
            }
        }
    }

    fn get(&self, value: Value) -> Option<&Name> {
        self.0.get(usize::try_from(value.0).ok()?)?.as_ref()
    }
}

/// The numbers that the next values get.
#[derive(Clone, Copy, Default)]
struct Ids {
    value: u64,
    argument: u64,
    conflict: u64,
}

struct Namer<'p> {
    names: Vec<Option<Name>>,
    program: &'p Program,
    ids: Ids,
    used: FxHashSet<SmolStr>,
}

impl Namer<'_> {
    /// Names the values of the regions of an operation. Those in one region do not know of those in
    /// another, but of all around them.
    fn nested(&mut self, operation: &Operation, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for region in &operation.regions {
            let ids = self.ids;
            let mut added = Vec::new();
            self.region(operation, region, &mut added);
            let blocks = region.blocks.iter().flat_map(|block| &block.operations);
            for inner in blocks.filter(|inner| !inner.regions.is_empty()) {
                self.nested(inner, depth + 1);
            }
            for name in added {
                self.used.remove(&name);
            }
            self.ids = ids;
        }
    }

    fn region(&mut self, parent: &Operation, region: &Region, added: &mut Vec<SmolStr>) {
        for (at, block) in region.blocks.iter().enumerate() {
            self.arguments(parent, block, at == 0, added);
            for operation in &block.operations {
                self.results(operation, added);
            }
        }
    }

    fn arguments(
        &mut self,
        parent: &Operation,
        block: &Block,
        is_entry: bool,
        added: &mut Vec<SmolStr>,
    ) {
        for (at, &argument) in block.arguments.iter().enumerate() {
            let chosen = match parent.name.as_str() {
                "stablehlo.while" | "mhlo.while" => Some("iterArg"),
                "chlo.scan" | "mhlo.scan" => Some(scanned(parent, at)),
                _ => None,
            };
            let base = match chosen {
                Some(word) => self.unique(word, added),
                None if is_entry => {
                    let word = format!("arg{}", self.ids.argument);
                    self.ids.argument = self.ids.argument.saturating_add(1);
                    self.unique(&word, added)
                }
                None => self.number(),
            };
            self.set(argument, Name { base, number: None });
        }
    }

    fn results(&mut self, operation: &Operation, added: &mut Vec<SmolStr>) {
        let results = &operation.results;
        if let Some(words) = self.chosen(operation).filter(|words| words.len() == results.len()) {
            for (&result, word) in results.iter().zip(words) {
                let base = self.unique(word, added);
                self.set(result, Name { base, number: None });
            }
            return;
        }
        if results.is_empty() {
            return;
        }
        let base = self.number();
        let is_one = results.len() == 1;
        for (at, &result) in results.iter().enumerate() {
            let number = (!is_one).then_some(at);
            self.set(result, Name { base: base.clone(), number });
        }
    }

    fn chosen(&self, operation: &Operation) -> Option<&'static [&'static str]> {
        if matches!(operation.name.as_str(), "stablehlo.constant" | "mhlo.constant") {
            return match self.program.type_of(*operation.results.first()?)? {
                Type::Tensor(ty) if matches!(ty.element, Scalar::Integer { .. }) => Some(&["c"]),
                _ => Some(&["cst"]),
            };
        }
        let op = crate::dialect::op(&operation.name)?;
        (!op.results.is_empty() && op.name == operation.name).then_some(op.results)
    }

    fn number(&mut self) -> SmolStr {
        let number = self.ids.value;
        self.ids.value = self.ids.value.saturating_add(1);
        format_smolstr!("{number}")
    }

    /// Returns a word that is no other name here, with a number after it if need be.
    fn unique(&mut self, word: &str, added: &mut Vec<SmolStr>) -> SmolStr {
        let mut name = SmolStr::new(word);
        while !self.used.insert(name.clone()) {
            name = format_smolstr!("{word}_{}", self.ids.conflict);
            self.ids.conflict = self.ids.conflict.saturating_add(1);
        }
        added.push(name.clone());
        name
    }

    fn set(&mut self, value: Value, name: Name) {
        let at = usize::try_from(value.0).ok();
        if let Some(slot) = at.and_then(|at| self.names.get_mut(at)) {
            *slot = Some(name);
        }
    }
}

/// The word for an argument of the body of a scan: the inputs come first.
fn scanned(scan: &Operation, at: usize) -> &'static str {
    let inits = scan.regions.first().and_then(|region| region.blocks.first());
    let arguments = inits.map_or(0, |block| block.arguments.len());
    let carried = super::pretty::scan_sizes(scan).map_or(0, |(_, inits)| inits);
    if at < arguments.saturating_sub(carried) { "input" } else { "carry" }
}

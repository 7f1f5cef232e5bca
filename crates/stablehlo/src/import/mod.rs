//! StableHLO programs as HLO modules, by the rules of XLA's conversion
//! (`xla/hlo/translate/mhlo_to_hlo`).
//!
//! The function `main` becomes the entry, other functions become computations where they are
//! called, and regions become computations named `region_0`, `region_1` ... Values that a loop
//! or a branch uses from outside become elements of its tuple.

mod approx_top_k;
mod asynchronous;
mod attributes;
mod body;
mod calls;
mod captures;
mod control;
mod custom_call;
mod einsum;
mod error;
mod extensions;
pub(crate) mod forms;
pub(crate) mod functions;
mod header;
mod literal;
mod location;
mod order;
mod quantized;
mod rows;
mod shardings;
mod shardy;
mod sizes;
mod special;
mod transfer;
mod types;

use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use tilewright_ir::{CompId, Module, Verified, verify};

use crate::limits::{ALWAYS, MAX_DEPTH, REPEATED};
use crate::mlir::{Attribute, Operation, Program, Span, Value};
pub(crate) use functions::Function;
pub(crate) use rows::Convert;

use error::Import;
pub use error::{ImportError, ImportErrorKind};
use location::Frames;

/// The functions that convert operations, for the rows of their ops.
pub(crate) mod convert {
    pub(crate) use super::asynchronous::{done as async_done, start as async_start};
    pub(crate) use super::calls::{call, composite};
    pub(crate) use super::control::{case, if_else, while_loop};
    pub(crate) use super::custom_call::custom_call;
    pub(crate) use super::einsum::{einsum, unary_einsum};
    pub(crate) use super::functions::broadcast::{
        broadcast, constant_like, cross_replica_sum, elementwise, index_select,
    };
    pub(crate) use super::quantized::{dequantize, quantize};
    pub(crate) use super::shardy::along_no_axes;
    pub(crate) use super::sizes::{
        const_shape, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota,
        dynamic_pad, dynamic_reshape, get_dimension_size, real_dynamic_slice, set_dimension_size,
    };
    pub(crate) use super::special::{
        all_to_all, bitcast, broadcast_in_dim, constant, convert, domain, dot, empty,
        get_tuple_element, infeed, nothing, optimization_barrier, outfeed, ragged_dot, rng, same,
        scan, ternary, tupled,
    };
    pub(crate) use super::transfer::{recv, send};
}

/// How many scales of quantised types may be read: each operation reads those of its types.
const SCALES: usize = 1 << 25;

/// Converts a StableHLO program to an HLO module, as XLA does.
///
/// # Errors
/// Returns an error with its place if HLO has no equivalent of an operation, if an operation
/// breaks its definition, or if the module breaks a rule of HLO.
pub fn import(program: &Program) -> Result<Verified, ImportError> {
    if program.module.name != "builtin.module" {
        let message = format!("`{}` is no module; name a whole program", program.module.name);
        let span = program.module.span;
        return Err(ImportError::new(ImportErrorKind::Malformed, span, message));
    }
    let program = &shardy::export(&extensions::unwrapped(program))?;
    let mut importer = Importer::new(program)?;
    let main = importer.function("main").ok_or_else(|| {
        let message = "the program has no function `main`; name its first function so";
        ImportError::new(ImportErrorKind::Malformed, program.module.span, message)
    })?;
    let entry = importer.entry(main)?;
    let module = importer.finish(entry)?;
    verify(module).map_err(|rejected| {
        let message = format!("the program is no valid HLO: {rejected}");
        ImportError::new(ImportErrorKind::Invalid, main.span, message)
    })
}

/// The part of the program that has been converted so far.
struct Importer<'p> {
    program: &'p Program,
    module: Module,
    /// The functions by their names.
    functions: FxHashMap<&'p str, &'p Operation>,
    /// The computations of functions; none while a function is being converted.
    lowered: FxHashMap<SmolStr, Option<CompId>>,
    /// The operations whose result is a constant.
    constants: FxHashMap<Value, &'p Operation>,
    frames: Frames,
    /// The names of computations that are taken, and the last number after each.
    names: FxHashMap<SmolStr, usize>,
    /// The number of regions that became computations.
    regions: usize,
    /// The number of computations that are being converted.
    depth: usize,
    /// How many more operations may be converted.
    left: usize,
    /// How many more scales of quantised types may be read.
    scales: usize,
}

impl<'p> Importer<'p> {
    fn new(program: &'p Program) -> Import<Self> {
        let name = program.module.attribute("sym_name").and_then(attributes::text);
        let mut importer = Self {
            program,
            module: Module::new(name.map_or_else(|| "main".into(), |name| body::sanitized(&name))),
            functions: FxHashMap::default(),
            lowered: FxHashMap::default(),
            constants: FxHashMap::default(),
            frames: Frames::default(),
            names: FxHashMap::default(),
            regions: 0,
            depth: 0,
            left: ALWAYS,
            scales: SCALES,
        };
        let operations = program.module.regions.iter().flat_map(|region| &region.blocks);
        for operation in operations.flat_map(|block| &block.operations) {
            if operation.name == "func.func" {
                let name = symbol(operation).ok_or_else(|| {
                    ImportError::malformed(operation, "lacks its name, `sym_name`")
                })?;
                importer.functions.insert(name, operation);
            }
            importer.find_constants(operation);
        }
        Ok(importer)
    }

    fn find_constants(&mut self, operation: &'p Operation) {
        let mut rest = vec![operation];
        while let Some(operation) = rest.pop() {
            self.left = self.left.saturating_add(REPEATED);
            if body::is_constant(operation)
                && let [result] = operation.results[..]
            {
                self.constants.insert(result, operation);
            }
            let blocks = operation.regions.iter().flat_map(|region| &region.blocks);
            rest.extend(blocks.flat_map(|block| &block.operations));
        }
    }

    fn function(&self, name: &str) -> Option<&'p Operation> {
        self.functions.get(name).copied()
    }

    fn finish(mut self, entry: CompId) -> Import<Module> {
        self.module.set_entry(entry);
        self.module.header.stack_tables = std::mem::take(&mut self.frames).finish();
        header::set(self.program, &mut self.module, entry)?;
        order::sort(&mut self.module);
        Ok(self.module)
    }

    /// Adds a computation just before its caller, with a name that none has.
    fn begin(&mut self, stem: &str, caller: Option<CompId>, span: Span) -> Import<CompId> {
        if self.depth >= MAX_DEPTH {
            let message = format!("calls and regions are nested more than {MAX_DEPTH} deep");
            return Err(ImportError::new(ImportErrorKind::TooDeep, span, message));
        }
        self.depth += 1;
        let name = self.free_name(stem);
        Ok(match caller {
            Some(caller) => self.module.add_computation_before(name, caller),
            None => self.module.add_computation(name),
        })
    }

    fn end(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn free_name(&mut self, stem: &str) -> SmolStr {
        let stem = body::sanitized(stem);
        let mut name = SmolStr::new(&stem);
        while self.names.contains_key(&name) {
            // Many computations may have one stem, so that each goes on where the last one stopped.
            let number = self.names.entry(SmolStr::new(&stem)).or_default();
            *number += 1;
            name = format!("{stem}.{number}").into();
        }
        self.names.insert(name.clone(), 0);
        name
    }
}

/// Returns the name of a function.
fn symbol(operation: &Operation) -> Option<&str> {
    match operation.attribute("sym_name")? {
        Attribute::String(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

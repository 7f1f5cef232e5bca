//! Programs as custom calls of XLA ([`NativeProgram`]): how they are handed over, and what a handler
//! runs.

use rustc_hash::FxHashSet;
use tilewright_ir::{
    ArrayShape, CompId, ElementType, Extras, InstId, Module, NativeProgram, Op, Shape, Verified,
    verify,
};
use tilewright_native::fused::{Operand, ValuesMut};
use tilewright_native::{Pool, View};
use tilewright_rewrite::analysis::iteration::IterationRegion;
use tilewright_text::{Form, PrintOptions, print};

use super::program::Prepared;
use crate::error::Error;

/// Returns a module in whose calls of programs the configuration has the program's text, and that
/// has no computations of theirs any more; the module itself if there is no such call.
///
/// # Errors
/// Returns an error if a program has no text that a configuration can have, or is none that a
/// handler can run.
pub fn sealed(module: &Verified) -> Result<Option<Verified>, Error> {
    let calls = |&id: &InstId| NativeProgram::of(module, id).map(|program| (id, program));
    let computations = module.computations().iter();
    let calls: Vec<(InstId, NativeProgram)> = computations
        .flat_map(|&computation| module.instructions(computation))
        .filter_map(|id| calls(&id))
        .collect();
    if calls.is_empty() {
        return Ok(None);
    }
    let mut edited: Module = (**module).clone();
    for (id, program) in calls {
        let text = text(module, program.computation)?;
        CallProgram::parse(&text)?;
        let config = NativeProgram::config(&text).ok_or_else(|| refused("has quoted text"))?;
        let Op::CustomCall(attrs) = module.op(id) else { continue };
        let mut attrs = attrs.clone();
        attrs.called_computations.clear();
        edited.set_attributes(id, Op::CustomCall(attrs)).map_err(|e| refused(&e.to_string()))?;
        let mut extras = module.extras(id).cloned().unwrap_or_default();
        extras.backend_config = Some(tilewright_ir::ops::attr::Verbatim(config.into()));
        edited.set_extras(id, extras);
    }
    keep_reachable(&mut edited);
    Ok(Some(verify(edited).map_err(|error| refused(&error.to_string()))?))
}

/// Returns the text of a module that does what a computation does.
fn text(module: &Module, computation: CompId) -> Result<String, Error> {
    let mut part = module.clone();
    part.name = "program".into();
    part.header = tilewright_ir::Header::default();
    part.set_entry(computation);
    keep_reachable(&mut part);
    for id in part.instructions(computation).collect::<Vec<_>>() {
        part.set_extras(id, Extras::default());
    }
    let part = verify(part).map_err(|error| refused(&error.to_string()))?;
    let options = PrintOptions::new().with_form(Form::Canonical);
    print(&part, &options).map_err(|error| refused(&error.to_string()))
}

/// Removes computations that the entry does not need.
fn keep_reachable(module: &mut Module) {
    let mut open: Vec<CompId> = module.entry().into_iter().collect();
    let mut kept: FxHashSet<CompId> = open.iter().copied().collect();
    while let Some(computation) = open.pop() {
        for id in module.instructions(computation) {
            open.extend(module.called(id).into_iter().filter(|&called| kept.insert(called)));
        }
    }
    module.retain_computations(|id| kept.contains(&id));
}

fn refused(why: &str) -> Error {
    tilewright_lower::LowerError::from(tilewright_lower::ErrorKind::Internal(
        format!("a program for this CPU's kernels {why}").into(),
    ))
    .into()
}

/// The program of a custom call.
#[derive(Debug)]
pub struct CallProgram {
    prepared: Prepared,
    inputs: Vec<ArrayShape>,
}

impl CallProgram {
    /// Reads the text of a program.
    ///
    /// # Errors
    /// Returns an error if it is no module, or one that is not a program as a whole, or an operand or
    /// result is no row-major array.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let module = crate::parse(text)?;
        let entry = module.entry().ok_or(Error::NotAProgram("has no entry"))?;
        let region = IterationRegion::whole(&module, entry);
        let region = region.ok_or(Error::NotAProgram("goes over several iteration spaces"))?;
        let parameters = module.computation(entry).parameters();
        let root = module.computation(entry).root().ok_or(Error::NotAProgram("has no root"))?;
        let results = match module.op(root) {
            Op::Tuple => module.operands(root),
            _ => std::slice::from_ref(&root),
        };
        let region =
            IterationRegion { inputs: parameters.to_vec(), outputs: results.to_vec(), ..region };
        let prepared = Prepared::of(&module, &region);
        let prepared =
            prepared.ok_or(Error::NotAProgram("has an instruction that no kernel has"))?;
        let shape = |&id: &InstId| match module.shape(id) {
            Shape::Array(shape) if shape.has_default_layout() => Ok(shape.clone()),
            Shape::Array(_) => Err(Error::NotAProgram("has an array that is not row major")),
            _ => Err(Error::NotAProgram("takes or returns a tuple within another")),
        };
        results.iter().try_for_each(|id| shape(id).map(drop))?;
        let inputs = parameters.iter().map(shape).collect::<Result<_, _>>()?;
        Ok(Self { prepared, inputs })
    }

    /// The shapes of the operands.
    pub fn inputs(&self) -> &[ArrayShape] {
        &self.inputs
    }

    /// The element type and the dims of each result.
    pub fn outputs(&self) -> &[(ElementType, Vec<i64>)] {
        &self.prepared.outputs
    }

    /// The elements, row major, of an operand by its number.
    ///
    /// # Errors
    /// Returns an error if there is no such operand, or the data are too short.
    pub fn operand<'a, T>(
        &self,
        number: usize,
        data: &'a [T],
    ) -> Result<Operand<'a>, tilewright_native::Error>
    where
        Operand<'a>: From<View<'a, T>>,
    {
        self.prepared.view(number, data).map(Operand::from)
    }

    /// Computes the results, and writes each to its room.
    ///
    /// # Errors
    /// As [`tilewright_native::fused::Program::run_into`].
    pub fn run_into(
        &self,
        operands: &[Operand<'_>],
        rooms: &mut [ValuesMut<'_>],
        pool: &dyn Pool,
    ) -> Result<(), tilewright_native::Error> {
        self.prepared.program.run_into(operands, rooms, pool)
    }
}

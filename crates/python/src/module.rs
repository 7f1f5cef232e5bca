//! Modules.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyTuple};
use tilewright::ir::{BuildError, Module as Graph, Verified, verify};
use tilewright::{Emit, Form, Loaded, MlirStyle, PrintOptions};

use crate::edit::Edit;
use crate::error::{ExceptionKind, plain, raised, unbuilt, usage};
use crate::instruction::{Computation, Instruction, computations};
use crate::reduce::ReduceSearch;
use crate::state::Cell;

/// How many lines a notebook shows of a module.
const SHOWN_LINES: usize = 200;

/// An HLO module.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) cell: Cell,
}

impl From<Verified> for Module {
    fn from(module: Verified) -> Self {
        Self { cell: Cell::new(Arc::new(module)) }
    }
}

fn made(loaded: Result<Loaded, tilewright::Error>) -> PyResult<Module> {
    Ok(loaded.map_err(|error| raised(&error))?.module.into())
}

/// Checks whether a text is a module rather than the name of a file.
fn is_hlo(text: &str) -> bool {
    text.contains('\n') || text.contains('{') || text.trim_start().starts_with("HloModule")
}

/// Calls a method that is written in Python.
fn method<'py>(
    module: &Bound<'py, Module>,
    name: &str,
    arguments: &Bound<'py, PyTuple>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = module.py();
    let method = py.import("tilewright._methods")?.getattr(name)?;
    let mut all = vec![module.as_any().clone()];
    all.extend(arguments.iter());
    method.call(PyTuple::new(py, all)?, options)
}

impl Module {
    /// The verified module. A module under edit is copied and verified.
    ///
    /// # Errors
    /// `VerifyError` with all errors of the module.
    pub(crate) fn verified(&self, py: Python<'_>) -> PyResult<Arc<Verified>> {
        if let Some(verified) = self.cell.settled() {
            return Ok(verified);
        }
        let graph = self.cell.read(Graph::clone)?;
        let verified = py.detach(move || verify(graph));
        verified.map(Arc::new).map_err(|rejected| unbuilt(BuildError::Rejected(rejected)))
    }

    /// The text of the module as it stands.
    fn print(&self, py: Python<'_>, options: &PrintOptions) -> PyResult<String> {
        let text = match self.cell.settled() {
            Some(verified) => py.detach(|| tilewright::print(&verified, options)),
            None => self.cell.read(|graph| tilewright::print(graph, options))?,
        };
        text.map_err(|error| raised(&error))
    }
}

#[pymethods]
impl Module {
    /// Reads HLO text.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<Self> {
        made(py.detach(|| tilewright::load_text("<text>", text)))
    }

    /// Reads a serialised `HloModuleProto`, `HloProto` or `HloSnapshot`.
    #[staticmethod]
    fn from_proto(py: Python<'_>, proto: &[u8]) -> PyResult<Self> {
        made(py.detach(|| tilewright::load_proto("<proto>", proto)))
    }

    /// Reads a file of HLO text or a proto.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        made(py.detach(|| tilewright::load_file(&path)))
    }

    /// Reads text, bytes of text or a proto, a path, or what `jax.jit(f).lower(..)` returns. A
    /// string is text if it has a line break, a brace, or `HloModule` at its beginning, and a path
    /// otherwise.
    #[staticmethod]
    fn load(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = source.py();
        if let Ok(text) = source.extract::<String>() {
            return if is_hlo(&text) {
                Self::from_text(py, &text)
            } else {
                Self::from_file(py, text.into())
            };
        }
        let bytes = source.cast::<PyBytes>().map(|bytes| bytes.as_bytes().to_vec());
        let bytes = bytes.or_else(|_| source.cast::<PyByteArray>().map(|bytes| bytes.to_vec()));
        if let Ok(bytes) = bytes {
            return made(py.detach(|| tilewright::load_bytes("<bytes>", bytes)));
        }
        if source.hasattr("compiler_ir")? {
            let dialect = PyDict::new(py);
            dialect.set_item("dialect", "hlo")?;
            let hlo = source.call_method("compiler_ir", (), Some(&dialect))?;
            let proto = hlo.call_method0("as_serialized_hlo_module_proto")?;
            return Self::from_proto(py, proto.cast::<PyBytes>()?.as_bytes());
        }
        match source.extract::<PathBuf>() {
            Ok(path) => Self::from_file(py, path),
            Err(_) => Err(usage(format!(
                "a module is loaded from text, bytes, a path or what `jax.jit(f).lower(..)` \
                 returns, not from {}",
                source.get_type().name()?
            ))),
        }
    }

    /// The text of the module: as it stands, also within an edit.
    #[pyo3(signature = (form="default", *, elide=false))]
    fn to_text(&self, py: Python<'_>, form: &str, elide: bool) -> PyResult<String> {
        let form = match form {
            "default" => Form::Default,
            "short" => Form::Short,
            "canonical" => Form::Canonical,
            other => {
                return Err(usage(format!(
                    "there is no form `{other}` of text; there are: default, short, canonical"
                )));
            }
        };
        self.print(py, &PrintOptions::new().with_form(form).with_elided_constants(elide))
    }

    /// A serialised `HloModuleProto`.
    fn to_proto<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let module = self.verified(py)?;
        let encoded = py.detach(|| tilewright::encode(&module));
        Ok(PyBytes::new(py, &encoded.map_err(|error| raised(&error))?))
    }

    /// StableHLO in MLIR's text: with or without locations, pretty or generic.
    #[pyo3(signature = (debug_info = true, generic = false))]
    fn to_stablehlo(&self, py: Python<'_>, debug_info: bool, generic: bool) -> PyResult<String> {
        let module = self.verified(py)?;
        let style = MlirStyle { is_generic: generic, has_locations: debug_info };
        let printed = py.detach(|| tilewright::print_stablehlo(&module, style));
        printed.map_err(|error| raised(&error))
    }

    /// StableHLO in MLIR's bytecode: a portable artifact, or the dialects as they are.
    #[pyo3(signature = (portable = true))]
    fn to_stablehlo_bytecode<'py>(
        &self,
        py: Python<'py>,
        portable: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let module = self.verified(py)?;
        let encoded = py.detach(|| {
            if portable {
                tilewright::encode_stablehlo(&module)
            } else {
                tilewright::encode_stablehlo_dialects(&module)
            }
        });
        Ok(PyBytes::new(py, &encoded.map_err(|error| raised(&error))?))
    }

    /// Writes a proto if the name ends in `.pb`, StableHLO if it ends in `.mlir` or `.mlirbc`, and
    /// HLO text otherwise.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let module = self.verified(py)?;
        let written = py.detach(|| {
            let emit = Emit::of_path(&path)?;
            let bytes = tilewright::write(&module, emit, &PrintOptions::default())?;
            Ok(std::fs::write(&path, bytes))
        });
        let stored = written.map_err(|error: tilewright::Error| raised(&error))?;
        stored.map_err(|error| {
            let raised =
                plain(ExceptionKind::File, format!("cannot write {}: {error}", path.display()));
            // The message says why, even if the number cannot be set.
            let _ = raised.value(py).setattr("errno", error.raw_os_error());
            raised
        })
    }

    /// Checks the module; one that is not under edit is valid.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.verified(py).map(|_| ())
    }

    /// Edits of the module, as in `with module.edit() as e:`. At the end the module is verified;
    /// all edits are undone if it is not valid, or if the block raises.
    fn edit(slf: Py<Self>) -> Edit {
        Edit::new(slf)
    }

    /// A picture: a drawing (`svg`), the language of Graphviz (`dot`) or a page (`html`).
    #[pyo3(
        signature = (*arguments, **options),
        text_signature = "(self, form='svg', *, after=False, around=None, depth=2, \
            computation=None, cost=False, profile=None, target=None, exact=False, \
            guards=True, fast_math=False, pipeline=None, passes=None, rules=())"
    )]
    fn graph<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "graph", arguments, options)
    }

    /// An HTML page on what an optimisation finds and does.
    #[pyo3(
        signature = (*arguments, **options),
        text_signature = "(self, target=None, *, check=False, exact=False, guards=True, \
            fast_math=False, pipeline=None, passes=None, rules=(), max_steps=None, \
            max_bytes=None)"
    )]
    fn report<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "report", arguments, options)
    }

    /// In what another module differs from this one as a graph.
    #[pyo3(
        signature = (*arguments, **options),
        text_signature = "(self, other, *, metadata=False, limit=100)"
    )]
    fn diff<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "diff", arguments, options)
    }

    /// The smallest module that is found for which `keep` is true.
    #[pyo3(signature = (keep, *, max_runs=None, max_seconds=None, progress=None))]
    fn reduce(
        &self,
        py: Python<'_>,
        keep: Py<PyAny>,
        max_runs: Option<u64>,
        max_seconds: Option<f64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let module = self.verified(py)?;
        let search = ReduceSearch { keep, progress, max_runs, max_seconds };
        search.reduce(py, &module).map(Self::from)
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.cell.read(|graph| graph.name.to_string())?)
    }

    /// The computation where execution begins.
    #[getter]
    fn entry(slf: Py<Self>) -> PyResult<Computation> {
        let entry = slf.get().cell.read(Graph::entry)?;
        let id = entry.ok_or_else(|| plain(ExceptionKind::Removed, "the module has no entry"))?;
        Ok(Computation { module: slf, id })
    }

    /// The instruction whose value is the result of the module.
    #[getter]
    fn root(slf: Py<Self>, py: Python<'_>) -> PyResult<Instruction> {
        let root = slf.get().cell.read(|graph| graph.computation(graph.entry()?).root())?;
        let root = root.ok_or_else(|| plain(ExceptionKind::Removed, "the module has no root"))?;
        Ok(Instruction::new(py, &slf, root))
    }

    /// The computations, callees before callers.
    #[getter]
    fn computations<'py>(slf: Py<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ids = slf.get().cell.read(|graph| graph.computations().to_vec())?;
        computations(py, &slf, ids)
    }

    /// The number of instructions in all computations.
    #[getter]
    fn instruction_count(&self) -> PyResult<usize> {
        Ok(self.cell.read(Graph::instruction_count)?)
    }

    #[pyo3(signature = (*arrays))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        arrays: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let run = slf.py().import("tilewright._api")?.getattr("run")?;
        let mut arguments = vec![slf.as_any().clone()];
        arguments.extend(arrays.iter());
        run.call1(PyTuple::new(slf.py(), arguments)?)?.getattr("output")
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.print(py, &PrintOptions::default())
    }

    fn __repr__(&self) -> String {
        let text = self.cell.read(|graph| {
            format!("<Module {}: {} instructions>", graph.name, graph.instruction_count())
        });
        text.unwrap_or_else(|_| "<Module given back>".to_owned())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let text = self.print(py, &PrintOptions::new().with_elided_constants(true))?;
        let (mut shown, count) = (String::new(), text.lines().count());
        for line in text.lines().take(SHOWN_LINES) {
            let line = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            shown += &line;
            shown.push('\n');
        }
        if let Some(more @ 1..) = count.checked_sub(SHOWN_LINES) {
            shown += &format!("... {more} more lines\n");
        }
        Ok(format!("<pre>{shown}</pre>"))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let other = other.get();
        if std::ptr::eq(self, other) {
            return Ok(true);
        }
        Ok(self.__str__(py)? == other.__str__(py)?)
    }
}

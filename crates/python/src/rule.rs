//! Rules and passes that are written in Python.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use tilewright::Class;
use tilewright::ir::{EditError, Module as Graph};
use tilewright::pattern as library;
use tilewright::{Context, Pass as LibraryPass};
use tilewright::{FloatMode, Options};

use crate::callback::{call, catching, kept};
use crate::error::{raised, usage};
use crate::function::{Function, Slot};
use crate::instruction::Instruction;
use crate::module::Module;
use crate::pattern::{Pattern, lent};
use crate::replacement::{Match, Operand, Replacement};
use crate::signals::interruptible;
use crate::state::Cell;

/// A rewrite of one expression into another.
#[pyclass(frozen, module = "tilewright")]
pub(crate) struct Rule {
    pub(crate) rule: library::Rule,
    /// The functions of the rule and of its pattern.
    functions: Vec<Py<Function>>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}

/// The class of a name.
fn class_of(name: &str) -> PyResult<Class> {
    const ALL: [Class; 4] = [Class::Exact, Class::Regrouping, Class::Bounded, Class::FastMath];
    ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| {
        let names = ALL.map(Class::name).join(", ");
        usage(format!("there is no class `{name}` of numerics; there are: {names}"))
    })
}

/// Calls a Python function with a match; `None` if it raises.
fn ask<T>(
    found: &library::Match<'_>,
    names: &[&'static str],
    f: impl FnOnce(Python<'_>, &Py<Module>, Match) -> PyResult<T>,
) -> Option<T> {
    call(|py| {
        lent(py, found.module(), |module| f(py, module, Match::new(py, module, found, names)))
    })
}

/// Asks Python for the class of a rule at a match.
fn class_at(
    found: &library::Match<'_>,
    names: &[&'static str],
    numerics_of: &Slot,
) -> Option<Class> {
    let class = ask(found, names, |py, _, found| {
        let name: Option<String> = numerics_of.call(py, (found,))?.extract()?;
        name.map(|name| class_of(&name)).transpose()
    });
    class.flatten()
}

/// Asks Python for the replacement of a match.
fn replaced(
    found: &library::Match<'_>,
    names: &[&'static str],
    new: &mut library::Replacement<'_>,
    replace: &Slot,
) -> Option<tilewright::ir::Value> {
    let graph = found.module();
    let value = ask(found, names, |py, module, found| {
        Replacement::lend(py, module, (graph, new), |new| {
            let unfit = py.import("tilewright._errors")?.getattr("DoesNotApply")?;
            let made = match replace.call(py, (found, new)) {
                Ok(made) => made,
                Err(error) if error.is_instance(py, &unfit) => return Ok(None),
                Err(error) => return Err(error),
            };
            if made.is_none() {
                return Ok(None);
            }
            let made: Operand<'_> = made.extract().map_err(|_| {
                usage("a rule returns an instruction, what `new.op(..)` returned, or None")
            })?;
            Replacement::value(new, &made).map(Some)
        })
    });
    value.flatten()
}

#[pymethods]
impl Rule {
    #[new]
    #[pyo3(signature = (
        name, pattern, replace, *, law="", numerics="fast-math", numerics_of=None, when=vec![],
        say=None, always=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "most have defaults in Python")]
    fn new(
        py: Python<'_>,
        name: &str,
        pattern: &Pattern,
        replace: Py<PyAny>,
        law: &str,
        numerics: &str,
        numerics_of: Option<Py<PyAny>>,
        when: Vec<(String, Py<PyAny>)>,
        say: Option<Py<PyAny>>,
        always: bool,
    ) -> PyResult<Self> {
        let names: Arc<[&'static str]> = pattern.names.as_slice().into();
        let mut rule = library::Rule::new(kept(name), pattern.pattern.clone())
            .with_law(kept(law))
            .with_class(class_of(numerics)?);
        let mut functions = Vec::new();
        Function::extend(&mut functions, py, &pattern.functions);
        let mut hold = |function| Function::hold(function, py, &mut functions);
        for (says, holds) in when {
            let (names, holds) = (Arc::clone(&names), hold(holds)?);
            rule = rule.when(kept(&says), move |found| {
                let asked =
                    ask(found, &names, |py, _, found| holds.call(py, (found,))?.is_truthy());
                asked.unwrap_or(false)
            });
        }
        if let Some(of) = numerics_of {
            let (names, of) = (Arc::clone(&names), hold(of)?);
            rule = rule.with_class_of(move |found| class_at(found, &names, &of));
        }
        if let Some(say) = say {
            let (names, say) = (Arc::clone(&names), hold(say)?);
            rule = rule.say(move |found| {
                let said = ask(found, &names, |py, _, found| say.call(py, (found,))?.extract());
                said.flatten()
            });
        }
        let replace = hold(replace)?;
        rule = rule.replace(move |found, new| replaced(found, &names, new, &replace));
        Ok(Self { rule: if always { rule.always() } else { rule }, functions })
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    #[getter]
    fn law(&self) -> &'static str {
        self.rule.law()
    }

    #[getter]
    fn numerics(&self) -> &'static str {
        self.rule.class().name()
    }

    /// The reason why the rule does not apply at an instruction; `None` if it does.
    #[pyo3(signature = (instruction, *, exact=false, fast_math=true))]
    fn why_not(
        &self,
        py: Python<'_>,
        instruction: &Instruction,
        exact: bool,
        fast_math: bool,
    ) -> PyResult<Option<String>> {
        let handle = instruction.module.get();
        handle.cell.at(instruction.at, |_, _| ())?;
        let module = handle.verified(py)?;
        let mode = match (exact, fast_math) {
            (true, _) => FloatMode::Exact,
            (false, true) => FloatMode::Fast,
            (false, false) => FloatMode::Guarded,
        };
        let (cancel, id) = (Arc::default(), instruction.at.id);
        let found = catching(&cancel, || self.rule.patch_or_why(&module, id, mode))?;
        Ok(found.err().map(|why| why.to_string()))
    }

    /// Why the default pipeline may not make or keep the rewrites of the rule.
    fn caveats(&self) -> Vec<String> {
        self.rule.caveats().iter().map(ToString::to_string).collect()
    }

    /// Tries the rule on small random modules: how many were tried, and the first wrong one.
    fn try_on(
        &self,
        py: Python<'_>,
        first_seed: u64,
        seeds: u64,
    ) -> PyResult<(usize, Option<[String; 2]>)> {
        let cancel = Arc::new(AtomicBool::new(false));
        let trial = || {
            let mut tried = 0;
            for seed in (0..seeds).map(|seed| first_seed.wrapping_add(seed)) {
                let one = tilewright::try_rule(&self.rule, seed..seed.saturating_add(1))?;
                tried += one.tried;
                if one.wrong.is_some() || cancel.load(Ordering::Relaxed) {
                    return Ok((tried, one.wrong));
                }
            }
            Ok((tried, None))
        };
        let stop = || cancel.store(true, Ordering::Relaxed);
        let trial = interruptible(py, stop, || catching(&cancel, trial))??;
        trial.map_err(|error: tilewright::Error| raised(&error))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        Function::visit(&self.functions, &visit)
    }

    fn __repr__(&self) -> String {
        format!("<{:?}>", self.rule)
    }
}

/// Rules that form one pass: at each instruction the first that matches is applied.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct RuleSet {
    set: library::RuleSet,
    /// The rules in it, which own its functions.
    rules: Vec<Py<Rule>>,
}

#[pymethods]
impl RuleSet {
    #[new]
    #[pyo3(signature = (name, rules, *, summary=""))]
    fn new(name: &str, rules: Vec<Py<Rule>>, summary: &str) -> Self {
        let all = rules.iter().map(|rule| rule.get().rule.clone());
        Self { set: library::RuleSet::new(kept(name), kept(summary), all), rules }
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.set.name()
    }

    #[getter]
    fn numerics(&self) -> &'static str {
        self.set.class().name()
    }

    #[getter]
    fn rules(&self, py: Python<'_>) -> Vec<Py<Rule>> {
        self.rules.iter().map(|rule| rule.clone_ref(py)).collect()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.rules.iter().try_for_each(|rule| visit.call(rule))
    }

    fn __repr__(&self) -> String {
        format!("<{:?}>", self.set)
    }
}

/// A pass that is written in Python.
struct Written {
    name: &'static str,
    summary: &'static str,
    class: Class,
    cost_gated: bool,
    object: Py<PyAny>,
}

impl Written {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let text = |name: &str| -> PyResult<&'static str> {
            Ok(kept(&object.getattr(name)?.extract::<String>()?))
        };
        Ok(Self {
            name: text("name")?,
            summary: text("summary")?,
            class: class_of(text("numerics")?)?,
            cost_gated: object.getattr("cost_gated")?.is_truthy()?,
            object: object.clone().unbind(),
        })
    }
}

impl LibraryPass for Written {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn class(&self) -> Class {
        self.class
    }

    fn is_cost_gated(&self) -> bool {
        self.cost_gated
    }

    fn run(&self, module: &mut Graph, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if !cx.float_mode.allow(self.class) {
            return Ok(0);
        }
        let graph = std::mem::take(module);
        let changes = call(|py| {
            let handle = Py::new(py, Module { cell: Cell::open(graph) })?;
            let changes = self.object.call_method1(py, "run", (&handle,));
            if let Some(graph) = handle.get().cell.take() {
                *module = graph;
            }
            changes?.extract::<usize>(py)
        });
        // Who began the optimisation raises the exception in place of this error.
        changes.ok_or_else(|| EditError::Order(self.name.into()))
    }
}

/// Adds rules and passes of Python to the options.
pub(crate) fn with_added(mut options: Options, added: &[Bound<'_, PyAny>]) -> PyResult<Options> {
    for object in added {
        options = if let Ok(rule) = object.cast::<Rule>() {
            options.with_pass(rule.get().rule.clone())
        } else if let Ok(rules) = object.cast::<RuleSet>() {
            options.with_pass(rules.get().set.clone())
        } else {
            options.with_pass(Written::of(object)?)
        };
    }
    Ok(options)
}

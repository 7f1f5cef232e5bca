"""The verbs: optimise, check, run, cost, lower, explain."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tilewright import _core
from tilewright._errors import UsageError
from tilewright._numerics import numerics
from tilewright._reports import (
    CheckReport,
    CostReport,
    Explanation,
    LowerReport,
    MemoryReport,
    Optimized,
    OptReport,
    Ran,
    Report,
    RuleTrial,
    RunReport,
)

# The engine at hand, and the machine that is simulated.
DEFAULT_TARGET = "auto"
DEFAULT_MACHINE = "tpu-like"


class Pass:
    """A pass that is written in Python. Derive from it, set ``name``, and define ``run``.

    A pass changes a module and keeps its meaning. It is called until it makes no change.
    """

    name: str = ""
    """The name for lists of passes and reports; no other pass has it."""
    summary: str = ""
    """What it does, in one line."""
    numerics: str = "exact"
    """The most that it does to floats: ``exact``, ``regrouping``, ``bounded``, ``guarded`` or
    ``fast-math``.
    It does not run where less is allowed."""
    cost_gated: bool = False
    """Whether its changes are among those that a pipeline keeps if they pay."""

    def run(self, module: _core.Module) -> int:
        """Changes the module, within ``with module.edit() as e:``, once.

        Returns:
            The number of changes. The module is gone once ``run`` has returned.
        """
        raise NotImplementedError


Added = _core.Rule | _core.RuleSet | Pass
"""What can be added to the built-in passes."""


def _added(
    passes: Iterable[str | Added] | None, rules: Iterable[Added]
) -> tuple[list[str] | None, list[Added]]:
    """The names of passes to run, and the rules and passes to add."""
    added = list(rules)
    for rule in added:
        if not isinstance(rule, Added):
            raise UsageError(f"{rule!r} is neither a Rule, a RuleSet nor a Pass", code="usage")
    if passes is None:
        names = None
    else:
        if isinstance(passes, str):
            raise UsageError("passes is a list of names, as ['dce']", code="usage")
        listed = list(passes)
        added += [each for each in listed if not isinstance(each, str)]
        names = [each if isinstance(each, str) else each.name for each in listed]
        names = [rule.name for rule in added if rule.name not in names] + names
    for each in added:
        if not each.name:
            raise UsageError(f"{type(each).__name__} has no name", code="usage")
    return names, added


def _is_function(what: Any) -> bool:
    """Whether something is a function of arrays, and not a module or what `Module.load` takes."""
    is_loaded = isinstance(what, _core.Module) or hasattr(what, "compiler_ir")
    return callable(what) and not is_loaded


def _refuse(**options: Any) -> None:
    """Refuses options that functions do not take."""
    for name, option in options.items():
        if option:
            raise UsageError(f"{name} is for modules, not for functions", code="usage")


def optimisation(
    target: str | None,
    numerics: str,
    pipeline: str | None,
    passes: Iterable[str | Added] | None,
    rules: Iterable[Added],
) -> dict[str, Any]:
    """What is asked of the optimiser, as ``_core`` takes it."""
    names, added = _added(passes, rules)
    return {
        "target": target or DEFAULT_TARGET,
        "numerics": numerics,
        "pipeline": pipeline,
        "passes": names,
        "added": added,
    }


def loaded(module: Any) -> _core.Module:
    """A module, or the module in what ``Module.load`` takes."""
    return module if isinstance(module, _core.Module) else _core.Module.load(module)


def _optimize(
    module: Any,
    target: str,
    numerics: str,
    pipeline: str | None,
    passes: Iterable[str | Added] | None,
    rules: Iterable[Added],
    layers: bool = False,
) -> tuple[_core.Module, str, dict[str, Any], str]:
    better, as_json, text, explanation = _core.optimize(
        loaded(module),
        **optimisation(target, numerics, pipeline, passes, rules),
        layers=layers,
    )
    return better, text, json.loads(as_json), explanation


def optimize(
    module: Any,
    target: str | None = None,
    *,
    exact: bool = False,
    guards: bool = True,
    fast_math: bool = False,
    pipeline: str | None = None,
    passes: Iterable[str | Added] | None = None,
    rules: Iterable[Added] = (),
) -> Any:
    """Optimises a module. A module without a rewrite that pays comes back unchanged.

    Given a function of JAX arrays, returns a function that is rewritten wherever JAX lowers it:
    ``jax.jit(optimize(f))`` is ``jit(f)``, for use inside an outer ``jit``.

    Args:
        module: a module, or what ``Module.load`` takes, or a function.
        target: the name of a target, or a TOML file; by default that of
            this machine's devices.
        exact: keep every bit of floats.
        guards: make rewrites whose error is bounded only where a test holds when the program runs, with
            the original beside them.
        fast_math: also make rewrites whose error has no bound.
        pipeline: a pipeline by name.
        passes: these passes instead, by name or as objects, until none changes anything; the
            result is kept whatever it costs.
        rules: rules and passes besides the built-in ones. In a list of passes that does not name
            them they come first.

    Raises:
        UsageError: there is no such target, pass or pipeline, or two options contradict.
        KeyboardInterrupt: on Ctrl-C, once the pass that runs has ended.
        Exception: what a rule or pass in Python raised first.
    """
    allowed = numerics(exact, guards, fast_math)
    if _is_function(module):
        from tilewright._jax import marked
        from tilewright._jax._settings import Settings

        _refuse(pipeline=pipeline, passes=passes, rules=rules)
        return marked(module, Settings(target or "auto", allowed))
    better, text, fields, explanation = _optimize(
        module, target or DEFAULT_TARGET, allowed, pipeline, passes, rules
    )
    return Optimized(better, OptReport(text, fields, explanation))


def explain(
    module: Any,
    target: str | None = None,
    *,
    exact: bool = False,
    guards: bool = True,
    fast_math: bool = False,
    pipeline: str | None = None,
    passes: Iterable[str | Added] | None = None,
    rules: Iterable[Added] = (),
) -> Any:
    """What ``optimize`` would do to each layer, and what keeps it from doing more. Arguments and
    errors are those of ``optimize``; ``optimize(...).report.explanation`` has every rewrite. Given a function of JAX arrays, returns a function that takes its arguments
    and returns the explanation."""
    if _is_function(module):
        from tilewright import _jax

        _refuse(pipeline=pipeline, passes=passes, rules=rules)
        settings = {"exact": exact, "guards": guards, "fast_math": fast_math}
        return _jax.explain(module, target=target or "auto", **settings)
    allowed = numerics(exact, guards, fast_math)
    _, text, fields, explanation = _optimize(
        module, target or DEFAULT_TARGET, allowed, pipeline, passes, rules, layers=True
    )
    return Explanation(text, fields, explanation)


def check(
    a: Any,
    b: Any = None,
    *,
    inputs: Iterable[Any] | None = None,
    seed: int = 0,
    seeds: int = 2,
    exact: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    replicas: int | None = None,
    partitions: int | None = None,
    max_steps: int | None = None,
    max_bytes: int | None = None,
    bisect: bool = False,
    target: str = DEFAULT_TARGET,
    guards: bool = True,
    fast_math: bool = False,
) -> CheckReport:
    """Evaluates two modules on the same inputs and compares their outputs.

    Args:
        a: a module, or what ``Module.load`` takes.
        b: the other one; without it, ``a`` as optimised for ``target``.
        inputs: arrays in place of random inputs of several kinds.
        seed: the seed of the first random inputs of each kind.
        seeds: the number of inputs of each kind.
        exact: floats must be equal bit for bit.
        rtol: the tolerance of floats as a fraction of the first module's; by default what rounding
            explains.
        atol: an absolute tolerance of floats, added to it.
        replicas: the number of replicas to simulate; by default those of the header, if results
            depend on them.
        partitions: the number of partitions of each replica.
        max_steps: the limit on steps of one evaluation, of some tenths of a microsecond each.
        max_bytes: the limit on bytes of values at one time.
        bisect: also find the first instruction whose values differ.
        target: the target to optimise for.
        guards, fast_math: those of ``optimize``, for ``b``.

    Raises:
        UsageError: the modules differ in parameters or results, or inputs do not fit.
        EvaluationError: one of them cannot be evaluated, or a limit is reached.
        KeyboardInterrupt: on Ctrl-C, once the instruction that runs has ended.
    """
    a = loaded(a)
    if b is None:
        b = optimize(a, target, exact=exact, guards=guards, fast_math=fast_math).module
    given = None if inputs is None else _inputs_for(a, tuple(inputs))
    as_json, text = _core.check(
        a,
        loaded(b),
        seed=seed,
        seeds=seeds,
        exact=exact,
        inputs=given,
        rtol=rtol,
        atol=atol,
        replicas=replicas,
        partitions=partitions,
        max_steps=max_steps,
        max_bytes=max_bytes,
        bisect=bisect,
    )
    report: CheckReport = CheckReport.of(as_json, text)
    return report


def run(
    module: Any,
    *arrays: Any,
    seed: int | None = None,
    max_steps: int | None = None,
    max_bytes: int | None = None,
    profile: bool = False,
    opaque_calls: bool = False,
) -> Ran:
    """Evaluates a module with the interpreter.

    Inputs are copied once on their way in, since they may change in Python while the module is
    evaluated. Outputs are not copied: the arrays own the memory in which they were computed.

    Args:
        module: a module, or what ``Module.load`` takes.
        arrays: one for each parameter, of its dtype and shape. A tuple is given as a tuple, a token
            as ``None``. Numbers and lists without a dtype are converted if they lose nothing.
        seed: take random inputs from this seed instead.
        max_steps: the limit on steps, of some tenths of a microsecond each; 200 million by default.
        max_bytes: the limit on bytes of values at one time; 4 GiB by default.
        profile: measure each instruction; elementwise ones then run one by one.
        opaque_calls: evaluate unknown custom calls as arbitrary functions.

    Raises:
        UsageError: an array does not fit its parameter, or there are too many or too few.
        EvaluationError: an op cannot be evaluated, or a limit is reached.
        KeyboardInterrupt: on Ctrl-C, once the instruction that runs has ended.
    """
    module = loaded(module)
    inputs = _inputs(module, arrays, seed)
    handed, outfeed, as_json, text = _core.run(
        module,
        inputs,
        seed=seed or 0,
        max_steps=max_steps,
        max_bytes=max_bytes,
        profile=profile,
        opaque_calls=opaque_calls,
    )
    return _ran(handed, outfeed, as_json, text)


def simulate(
    module: Any,
    *arrays: Any,
    target: str = DEFAULT_MACHINE,
    strategy: str | None = None,
    seed: int | None = None,
    max_steps: int | None = None,
    max_bytes: int | None = None,
) -> Ran:
    """Simplifies a module and runs it on the simulated machine of a target: its report counts
    cycles and bytes. Arrays, limits and errors are those of ``run``.

    Args:
        module: a module, or what ``Module.load`` takes.
        arrays: one for each parameter.
        target: the name of a target, or a TOML file.
        strategy: how reductions are lowered; by default in one pass.
        seed: take random inputs from this seed instead.
        max_steps: the limit on steps of what the host runs.
        max_bytes: the limit on bytes of values at one time.

    Raises:
        UsageError: there is no such target or strategy, an array does not fit, or the module runs
            on several devices.
        EvaluationError: an op cannot be evaluated, or a limit is reached.
        KeyboardInterrupt: on Ctrl-C, once the pass, kernel or instruction that runs has ended.
    """
    module = loaded(module)
    given = _inputs(module, arrays, seed)
    return _ran(
        *_core.simulate(
            module,
            given,
            target,
            strategy=strategy,
            seed=seed or 0,
            max_steps=max_steps,
            max_bytes=max_bytes,
        )
    )


def _inputs(
    module: _core.Module, arrays: tuple[Any, ...], seed: int | None
) -> list[_core.Literal] | None:
    """The inputs of a run; ``None`` if they are random."""
    if seed is None:
        return _inputs_for(module, arrays)
    if arrays:
        raise UsageError("seed and arrays exclude each other", code="usage")
    return None


def _inputs_for(module: _core.Module, arrays: tuple[Any, ...]) -> list[_core.Literal]:
    # It imports NumPy, which takes longer than all else here: when the first arrays come.
    from tilewright._values import inputs_for

    return inputs_for(_core.parameter_shapes(module), arrays)


def _ran(handed: Any, outfeed: list[Any], as_json: str, text: str) -> Ran:
    from tilewright._values import value

    report: RunReport = RunReport.of(as_json, text)
    return Ran(value(handed), tuple(value(each) for each in outfeed), report)


def cost(module: Any, target: str = DEFAULT_TARGET) -> CostReport:
    """The modelled costs of a module on a target.

    Raises:
        UsageError: there is no such target.
        KeyboardInterrupt: on Ctrl-C.
    """
    report: CostReport = CostReport.of(*_core.cost(loaded(module), target))
    return report


def memory(module: Any, target: str = DEFAULT_TARGET) -> MemoryReport:
    """The arrays that a module keeps in memory on a target: the largest with their padding, those in use when it
    holds most, and what would help.

    Raises:
        UsageError: there is no such target.
        KeyboardInterrupt: on Ctrl-C.
    """
    report: MemoryReport = MemoryReport.of(*_core.memory(loaded(module), target))
    return report


def lower(
    module: Any, target: str = DEFAULT_MACHINE, *, strategy: str | None = None, plan: bool = False
) -> LowerReport:
    """The kernels that a module runs as on a target, or why an instruction has none.

    Args:
        module: a module, or what ``Module.load`` takes.
        target: the name of a target, or a TOML file.
        strategy: how reductions are lowered; by default in one pass.
        plan: the plans of the reduces instead.

    Raises:
        UsageError: there is no such target or strategy.
        KeyboardInterrupt: on Ctrl-C, once the pass that runs has ended, or the kernel that is made.
    """
    as_json, text = _core.lower(loaded(module), target, strategy=strategy, plan=plan)
    listed = json.loads(as_json)
    fields = {"instructions": [] if plan else listed, "plans": listed if plan else []}
    return LowerReport(text, fields)


def try_rule(rule: _core.Rule, seeds: int = 100, *, first_seed: int = 0) -> RuleTrial:
    """Tries a rule on small random modules that its pattern matches, one for each seed, and
    compares their outputs before and after as its ``numerics`` demand."""
    tried, wrong = rule.try_on(first_seed, seeds)
    pair = None if wrong is None else (wrong[0], wrong[1])
    return RuleTrial(tried, pair, tuple(rule.caveats()))


def passes() -> Report:
    """Every pass and pipeline: ``tilewright passes --json``."""
    report: Report = Report.of(*_core.passes())
    return report


def ops() -> Report:
    """Every op: ``tilewright ops --json``."""
    report: Report = Report.of(*_core.ops())
    return report


def targets() -> Report:
    """Every built-in target: ``tilewright targets --json``."""
    report: Report = Report.of(*_core.targets())
    return report

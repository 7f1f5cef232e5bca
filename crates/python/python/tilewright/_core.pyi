"""The compiled half of the package.

Shapes are written as in HLO: ``f32[2,3]`` is an array of 2 by 3 elements of type ``f32``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, final

from tilewright._api import Added
from tilewright._reports import Difference, Ran, RunReport

__version__: str

@final
class Module:
    """An HLO module. It is valid, but within ``with module.edit() as e:``.

    ``module(*arrays)`` evaluates it and returns the value of its root; see ``tilewright.run``.
    ``str(module)`` is HLO text that XLA reads. Two modules are equal if their texts are.
    """

    @staticmethod
    def from_text(text: str) -> Module:
        """Reads HLO text.

        Raises:
            ParseError: it is not HLO.
            VerifyError: it is HLO, and not valid.
        """
    @staticmethod
    def from_proto(proto: bytes) -> Module:
        """Reads a serialised ``HloModuleProto``, ``HloProto`` or ``HloSnapshot``.

        Raises:
            ParseError: it is none of them.
            VerifyError: its module is not valid.
        """
    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Module:
        """Reads a file of HLO text or a proto.

        Raises:
            FileError: the file cannot be read.
            ParseError: it is neither.
            VerifyError: its module is not valid.
        """
    @staticmethod
    def load(source: Any) -> Module:
        """Reads text, bytes of text or a proto, a path, or what ``jax.jit(f).lower(..)`` returns. A
        string is text if it has a line break, a brace, or ``HloModule`` at its beginning, and a
        path otherwise.

        Raises:
            UsageError: the source is something else.
            FileError: the file cannot be read.
            ParseError: it is not HLO.
            VerifyError: it is HLO, and not valid.
        """
    def to_text(self, form: str = "default", *, elide: bool = False) -> str:
        """The text of the module: as it stands, also within an edit.

        Args:
            form: ``default``, ``short`` (no metadata) or ``canonical`` (for comparisons).
            elide: write constants of more than ten elements as ``{...}``; such text is for people.

        Raises:
            UsageError: there is no such form.
            TilewrightError: text cannot express a part of the module.
        """
    def to_proto(self) -> bytes:
        """A serialised ``HloModuleProto``.

        Raises:
            VerifyError: the module is under edit, and not valid.
            TilewrightError: proto cannot express a part of the module.
        """
    def to_stablehlo(self, debug_info: bool = True, generic: bool = False) -> str:
        """StableHLO in MLIR's text, as MLIR's own printer writes it.

        Args:
            debug_info: write the locations, which hold the metadata of instructions, as
                ``as_text(debug_info=True)`` of JAX does.
            generic: write each operation in its generic form.

        Raises:
            VerifyError: the module is under edit, and not valid.
            TilewrightError: StableHLO has no equivalent of a part of the module.
        """
    def to_stablehlo_bytecode(self, portable: bool = True) -> bytes:
        """StableHLO in MLIR's bytecode.

        Args:
            portable: write an artifact that jaxlib reads from 0.4.35 on; otherwise the dialects
                as they are, for a jaxlib of about the same age as this package.

        Raises:
            VerifyError: the module is under edit, and not valid.
            TilewrightError: StableHLO has no equivalent of a part of the module.
        """
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a proto if the name ends in ``.pb``, StableHLO if it ends in ``.mlir`` or
        ``.mlirbc``, and HLO text otherwise.

        Raises:
            FileError: the file cannot be written.
            UsageError: the ending is that of a form that cannot be written.
            VerifyError: the module is under edit, and not valid.
        """
    def verify(self) -> None:
        """Checks the module; one that is not under edit is valid.

        Raises:
            VerifyError: with all errors of the module in ``diagnostics``.
        """
    def edit(self) -> Edit:
        """Edits of the module, as in ``with module.edit() as e:``. At the end the module is
        verified; all edits are undone if it is not valid, or if the block raises."""
    def graph(
        self,
        form: str = "svg",
        *,
        after: bool = False,
        around: str | Instruction | None = None,
        depth: int = 2,
        computation: str | Computation | None = None,
        cost: bool = False,
        profile: Ran | RunReport | None = None,
        target: str | None = None,
        exact: bool = False,
        guards: bool = True,
        fast_math: bool = False,
        pipeline: str | None = None,
        passes: Iterable[str | Added] | None = None,
        rules: Iterable[Added] = (),
    ) -> str:
        """A picture of the module: ``tilewright graph``.

        Args:
            form: ``svg``, a drawing of up to 800 nodes; ``html``, a page whose boxes open and
                close; or ``dot``, the language of Graphviz.
            after: optimise the module, and draw it before and after, with the changes marked.
            around: draw only what is near this instruction.
            depth: how many edges away from it.
            computation: draw only this computation, and what it calls.
            cost: colour instructions by their share of the modelled cycles.
            profile: colour them by their share of the time in this: what
                ``tilewright.run(module, ..., profile=True)`` returned.
            target: the target, which decides what is padded and moved; ``tpu-like`` if absent.
            exact, guards, fast_math, pipeline, passes, rules: those of ``tilewright.optimize``, for
                ``after``.

        Raises:
            UsageError: there is no such form, instruction, computation, target or pass; two options
                contradict; or the module is too large for the form.
            VerifyError: the module is under edit, and not valid.
            KeyboardInterrupt: on Ctrl-C, once the pass that runs has ended.
        """
    def report(
        self,
        target: str | None = None,
        *,
        check: bool = False,
        exact: bool = False,
        guards: bool = True,
        fast_math: bool = False,
        pipeline: str | None = None,
        passes: Iterable[str | Added] | None = None,
        rules: Iterable[Added] = (),
        max_steps: int | None = None,
        max_bytes: int | None = None,
    ) -> str:
        """An HTML page on what an optimisation finds and does: ``tilewright report``.

        Args:
            target: the name of a target, or a TOML file; ``tpu-like`` if absent.
            check: evaluate the module before and after, and say in the page whether they agree.
            exact, guards, fast_math, pipeline, passes, rules: those of ``tilewright.optimize``.
            max_steps: the limit on steps of one evaluation of ``check``.
            max_bytes: the limit on bytes of values at one time.

        Raises:
            UsageError: there is no such target, pass or pipeline, or two options contradict.
            EvaluationError: one of the modules cannot be evaluated, or a limit is reached.
            VerifyError: the module is under edit, and not valid.
            KeyboardInterrupt: on Ctrl-C, once the pass or instruction that runs has ended.
        """
    def diff(self, other: Any, *, metadata: bool = False, limit: int = 100) -> Difference:
        """In what another module differs from this one as a graph: ``tilewright diff``. Names of
        instructions and their order are no difference.

        Args:
            other: a module, or what ``Module.load`` takes.
            metadata: compare metadata, origins and statistics of instructions, too.
            limit: the most differences that the text of the result lists.

        Raises:
            VerifyError: one of them is under edit, and not valid.
        """
    def reduce(
        self,
        keep: Callable[[Module], object],
        *,
        max_runs: int | None = None,
        max_seconds: float | None = None,
        progress: Callable[[Module], object] | None = None,
    ) -> Module:
        """The smallest module that is found for which ``keep`` is true: ``tilewright reduce``. This
        module stays as it is.

        Args:
            keep: whether a module still shows what is looked for, such as an error. It is called
                on this thread, with one valid module after another, the first of which is this
                one. What it raises ends the search.
            max_runs: end after this many calls of ``keep``, with the best module so far.
            max_seconds: end after this time, with the best module so far.
            progress: is called with each smaller module, as to save it.

        Raises:
            UsageError: ``keep`` is false for this module.
            VerifyError: the module is under edit, and not valid.
            KeyboardInterrupt: on Ctrl-C, also within ``keep``; ``progress`` saw the best module.
            Exception: what ``keep`` or ``progress`` raised.
        """
    @property
    def name(self) -> str: ...
    @property
    def entry(self) -> Computation:
        """The computation where execution begins."""
    @property
    def root(self) -> Instruction:
        """The instruction whose value is the result of the module."""
    @property
    def computations(self) -> tuple[Computation, ...]:
        """The computations, callees before callers."""
    @property
    def instruction_count(self) -> int:
        """The number of instructions in all computations."""
    def __call__(self, *arrays: Any) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__ = None  # type: ignore[assignment]
    def _repr_html_(self) -> str: ...

@final
class Shape:
    """The shape of a value: an array, a tuple or a token. ``Shape("f32[2,3]")`` reads one.

    Raises:
        ParseError: the text is no shape.
    """

    def __new__(cls, text: str) -> Shape: ...
    @property
    def element_type(self) -> str | None:
        """The element type, as ``f32``; ``None`` if it is not an array, as below."""
    @property
    def dims(self) -> tuple[int, ...] | None:
        """The size of each dim."""
    @property
    def rank(self) -> int | None:
        """The number of dims."""
    @property
    def size(self) -> int | None:
        """The number of elements."""
    @property
    def layout(self) -> str | None:
        """The layout as in text, ``{1,0}``; ``None`` if it is not written."""
    @property
    def dynamic_dims(self) -> tuple[bool, ...] | None:
        """Whether the size of each dim is known only at run time; ``dims`` has the most."""
    @property
    def is_tuple(self) -> bool: ...
    @property
    def elements(self) -> list[Shape]:
        """The shapes of the elements of a tuple; empty for other shapes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Computation:
    """A computation of a module: instructions in an order in which operands come before users.

    ``computation["x"]`` is the instruction ``x``; iteration and ``len`` go over instructions.

    Raises:
        RemovedError: by every attribute, once the computation is gone.
    """

    @property
    def module(self) -> Module: ...
    @property
    def name(self) -> str: ...
    @property
    def instructions(self) -> tuple[Instruction, ...]: ...
    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters, by number."""
    @property
    def root(self) -> Instruction:
        """The instruction whose value is the result."""
    @property
    def is_entry(self) -> bool: ...
    @property
    def callers(self) -> tuple[Instruction, ...]:
        """The instructions that call it."""
    def post_order(self) -> tuple[Instruction, ...]:
        """The root and all that it depends on, operands before users."""
    def __getitem__(self, name: str, /) -> Instruction: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Instruction]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Instruction:
    """An instruction of a module. Its ``str`` is its line of text.

    Raises:
        RemovedError: by every attribute, once the instruction is removed, or the edit that made it
            is undone.
    """

    @property
    def module(self) -> Module: ...
    @property
    def name(self) -> str: ...
    @property
    def opcode(self) -> str:
        """The op, as in text: ``add``, ``get-tuple-element``."""
    @property
    def shape(self) -> Shape: ...
    @property
    def operands(self) -> tuple[Instruction, ...]: ...
    @property
    def users(self) -> tuple[Instruction, ...]:
        """The instructions that read it, each once."""
    @property
    def computation(self) -> Computation: ...
    @property
    def called_computations(self) -> tuple[Computation, ...]: ...
    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the op: numbers, texts and tuples of them (``dimensions`` is a tuple,
        ``to_apply`` a name), and the text of HLO for all others."""
    @property
    def parameter_number(self) -> int | None:
        """The number of a parameter; ``None`` for other instructions."""
    @property
    def value(self) -> Any:
        """The value of a constant as a new NumPy array; ``None`` for other instructions.

        Raises:
            UsageError: the text that the module was read from has no value for it.
        """
    @property
    def metadata(self) -> dict[str, Any]:
        """``op_type``, ``op_name``, ``source_file`` and ``source_line``, those that are known."""
    @property
    def sharding(self) -> str | None:
        """The sharding as in text: ``{devices=[2,1]0,1}``."""
    @property
    def frontend_attributes(self) -> dict[str, str]: ...
    @property
    def is_root(self) -> bool: ...
    @property
    def is_live(self) -> bool:
        """Whether another instruction reads it, or it is the root."""
    @property
    def is_valid(self) -> bool:
        """Whether the instruction still exists."""
    def transitive_operands(self) -> tuple[Instruction, ...]:
        """All that it depends on, operands before users."""
    def transitive_users(self) -> tuple[Instruction, ...]:
        """All that depends on it, in the order of the computation."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Edit:
    """Edits of a module, within ``with module.edit() as e:``. The module shows each at once.

    Raises:
        UsageError: by ``with``, if the module is being edited already, also by another thread, or
            was lent to a rule.
        UsageError: by every method that changes something, if the edit is refused, an instruction
            belongs to another module, or the block has ended.
        RemovedError: by the same, if an instruction was removed.
    """

    def __enter__(self) -> Edit: ...
    def __exit__(self, kind: Any, value: Any, traceback: Any) -> bool: ...
    @property
    def module(self) -> Module: ...
    def verify(self) -> None:
        """Checks the module as it is now.

        Raises:
            VerifyError: with all errors of the module in ``diagnostics``.
        """
    def insert(
        self,
        opcode: str,
        operands: Sequence[Instruction] = ...,
        attributes: str = "",
        *,
        shape: Shape | str | None = None,
        name: str | None = None,
        before: Instruction | None = None,
        computation: Computation | None = None,
    ) -> Instruction:
        """Inserts an instruction. The root stays the same.

        Args:
            opcode: the op, as in text.
            operands: instructions of one computation.
            attributes: as in text: ``dimensions={0}, to_apply=%sum``.
            shape: the shape of the result; inferred if it is left out.
            name: its name; a number is added if another instruction has it.
            before: the instruction that it goes before; by default it goes directly after the last
                of its operands, or at the beginning if it has none.
            computation: where an instruction without operands goes; by default the entry.

        Raises:
            ParseError: the attributes are no HLO, or the operands do not fit.
        """
    def parameter(
        self, name: str, shape: Shape | str, *, computation: Computation | None = None
    ) -> Instruction:
        """Adds the next parameter of a computation, by default of the entry, whose declared layout
        gets it, too. Who calls another computation must give it a value: replace the calls in the
        same block, or the module does not verify at its end.

        Args:
            name: its name; a number is added if another instruction has it.
            shape: its shape, as ``f32[8,128]``.
            computation: the computation that gets it.
        """
    def constant(
        self,
        value: Any,
        element_type: str | None = None,
        *,
        name: str | None = None,
        before: Instruction | None = None,
        computation: Computation | None = None,
    ) -> Instruction:
        """Inserts a constant from an array, or from a number or list with an element type."""
    def replace_uses(self, old: Instruction, new: Instruction) -> None:
        """Makes every user of ``old`` read ``new``, which has the same type and dims, and ``new``
        the root if ``old`` was it. ``old`` stays, without users."""
    def set_operand(self, user: Instruction, operand: int, value: Instruction) -> None:
        """Sets the operand of this number, from 0."""
    def set_root(self, instruction: Instruction) -> None:
        """Makes an instruction the root of its computation."""
    def remove(self, instruction: Instruction) -> None:
        """Removes an instruction that nothing reads."""
    def rename(self, instruction: Instruction, name: str) -> str:
        """Renames an instruction. Returns the name, with a number if another one has it."""
    def set_metadata(
        self,
        instruction: Instruction,
        *,
        op_name: str | None = None,
        op_type: str | None = None,
        source_file: str | None = None,
        source_line: int | None = None,
    ) -> None:
        """Sets these parts of the metadata; the others stay."""

@final
class Builder:
    """Builds a module op by op; shapes are inferred.

    Raises:
        UsageError: by every method, if the operands do not fit, or the module is finished.
    """

    def __new__(cls, name: str = "module") -> Builder: ...
    def parameter(self, name: str, shape: Shape | str) -> Value:
        """Adds the next parameter."""
    def constant(self, value: Any, element_type: str | None = None) -> Value:
        """Adds a constant from an array, or from a number or list with an element type."""
    def op(
        self,
        opcode: str,
        operands: Sequence[Value] = ...,
        attributes: str = "",
        *,
        shape: Shape | str | None = None,
    ) -> Value:
        """Adds any op, with attributes as in text.

        Raises:
            ParseError: the attributes are no HLO, or the operands do not fit.
        """
    def computation(self, name: str, build: Callable[[Builder], Value]) -> Subcomputation:
        """Adds a computation that others can call: ``build`` gets this builder, adds parameters and
        instructions, and returns the root.

        Raises:
            Exception: what ``build`` raised; the module then lacks the computation.
        """
    def call(self, to_apply: Subcomputation, operands: Sequence[Value]) -> Value:
        """Adds a call of a computation."""
    def while_loop(self, condition: Subcomputation, body: Subcomputation, init: Value) -> Value:
        """Adds a loop: while ``condition`` yields true of the state, ``body`` makes the next one.
        The state is one value, for several a tuple, and keeps its shape."""
    def conditional(
        self,
        pred: Value,
        on_true: Subcomputation,
        true_operand: Value,
        on_false: Subcomputation,
        false_operand: Value,
    ) -> Value:
        """Adds a branch: ``on_true`` of ``true_operand`` if the scalar ``pred`` is true, ``on_false``
        of ``false_operand`` otherwise. Both take one parameter and return the same shape."""
    def conditional_by_index(
        self, index: Value, branches: Sequence[tuple[Subcomputation, Value]]
    ) -> Value:
        """Adds a choice of branches, each with its operand, by a scalar of ``s32``. An index out of
        range chooses the last branch."""
    def sort(
        self,
        operands: Sequence[Value],
        dimension: int,
        comparator: Subcomputation,
        *,
        is_stable: bool = False,
    ) -> Value:
        """Adds a sort along a dim. ``comparator`` takes two elements of each operand and yields
        whether the first stands before the second; several operands are sorted together, into a
        tuple."""
    def unary(self, opcode: str, operand: Value) -> Value:
        """Adds an elementwise op of one operand: ``negate``, ``exponential``."""
    def binary(self, opcode: str, lhs: Value, rhs: Value) -> Value:
        """Adds an elementwise op of two operands of one shape: ``add``, ``maximum``."""
    def compare(self, direction: str, lhs: Value, rhs: Value) -> Value:
        """Adds a comparison, ``EQ``, ``NE``, ``LT``, ``LE``, ``GT`` or ``GE``, whose result is
        ``pred``."""
    def select(self, which: Value, on_true: Value, on_false: Value) -> Value:
        """Adds a choice between two values by truth values."""
    def convert(self, operand: Value, element_type: str) -> Value:
        """Adds a conversion to another element type."""
    def reshape(self, operand: Value, dims: Sequence[int]) -> Value:
        """Adds a reshape: the same elements in row-major order."""
    def broadcast(
        self, operand: Value, dims: Sequence[int], dimensions: Sequence[int] = ...
    ) -> Value:
        """Adds a broadcast to ``dims``: operand dim ``i`` becomes result dim ``dimensions[i]``."""
    def transpose(self, operand: Value, permutation: Sequence[int]) -> Value:
        """Adds a transpose: result dim ``i`` is operand dim ``permutation[i]``."""
    def reduce(
        self,
        operand: Value,
        by: str | Subcomputation,
        dimensions: Sequence[int],
        init: Value | None = None,
    ) -> Value:
        """Adds a reduction along ``dimensions`` by ``add``, ``multiply``, ``maximum``, ``minimum``,
        ``and``, ``or`` or ``xor``, or by a computation of an accumulator and an element. It begins
        with the identity unless ``init`` is given; with a computation, ``init`` must be given."""
    def dot(
        self,
        lhs: Value,
        rhs: Value,
        *,
        lhs_contracting: Sequence[int] | None = None,
        rhs_contracting: Sequence[int] | None = None,
        lhs_batch: Sequence[int] = ...,
        rhs_batch: Sequence[int] = ...,
        element_type: str | None = None,
    ) -> Value:
        """Adds a product. By default the last dim of ``lhs`` is summed with the first of ``rhs``.
        The result has the batch dims, then the other dims of ``lhs``, then those of ``rhs``."""
    def tuple(self, elements: Sequence[Value]) -> Value:
        """Adds a tuple."""
    def get_tuple_element(self, tuple: Value, index: int) -> Value:
        """Adds the element of a tuple with this number, from 0."""
    def finish(self, root: Value) -> Module:
        """Returns the module with this result. The builder cannot be used any more.

        Raises:
            VerifyError: the module is not valid.
        """

@final
class Subcomputation:
    """A computation of a module that is being built, which other computations can call."""

    @property
    def name(self) -> str: ...

@final
class Value:
    """A value of a module that is being built."""

    @property
    def shape(self) -> Shape: ...
    @property
    def name(self) -> str: ...
    @property
    def opcode(self) -> str: ...

@final
class Pattern:
    """A description of expressions, with names for their parts; see ``tilewright.pattern``."""

    @staticmethod
    def any(name: str) -> Pattern:
        """Matches any value, and names it."""
    @staticmethod
    def constant(name: str | None = None, value: float | None = None) -> Pattern:
        """Matches a constant, with a name, or whose elements are all ``value``."""
    @staticmethod
    def op(opcode: str, operands: Sequence[Pattern]) -> Pattern:
        """Matches an instruction of this op whose operands match.

        Raises:
            UsageError: there is no such op.
        """
    def named(self, name: str) -> Pattern:
        """The same pattern, with a name for the value."""
    def used_once(self) -> Pattern:
        """Nothing else may read the value."""
    def row_major(self) -> Pattern:
        """It must be an array with static dims in row-major order."""
    def static_dims(self) -> Pattern:
        """It must be an array with static dims, in any layout."""
    def scalar(self) -> Pattern:
        """It must be an array without dims."""
    def element_type(self, element_type: str) -> Pattern:
        """It must be an array of this type.

        Raises:
            UsageError: there is no such type.
        """
    def with_extras(self) -> Pattern:
        """It may carry a sharding, control dependencies or frontend attributes, which the
        replacement then has to keep."""
    def when(self, says: str, holds: Callable[[Instruction], object]) -> Pattern:
        """A condition on the instruction. ``says`` completes the sentence "it must ..."."""
    @property
    def names(self) -> list[str]: ...
    def matches(self, instruction: Instruction) -> bool:
        """Whether an instruction with its operands matches.

        Raises:
            UsageError: its module is under edit.
            Exception: what a condition raised.
        """

@final
class Match:
    """A matched expression: ``found["x"]`` is the value with a name of the pattern. It is gone once
    the call has returned."""

    @property
    def module(self) -> Module: ...
    @property
    def root(self) -> Instruction:
        """The instruction that the whole pattern matched."""
    def __getitem__(self, name: str, /) -> Instruction: ...
    def keys(self) -> tuple[str, ...]: ...

@final
class NewValue:
    """An instruction that a replacement will have."""

    @property
    def shape(self) -> Shape: ...

@final
class Replacement:
    """The instructions that take the place of a match.

    Raises:
        DoesNotApply: by every method that adds an instruction, if the operands do not fit. A rule
            that lets it pass does not apply, and changes nothing.
    """

    def op(
        self,
        opcode: str,
        operands: Sequence[Instruction | NewValue],
        attributes: str = "",
        *,
        shape: Shape | str | None = None,
    ) -> NewValue:
        """Adds any op. With attributes the module is copied to read them.

        Raises:
            ParseError: the attributes are no HLO.
        """
    def constant(self, value: Any, element_type: str | None = None) -> NewValue: ...
    def reshape(self, value: Instruction | NewValue, dims: Sequence[int]) -> NewValue: ...
    def transpose(self, value: Instruction | NewValue, permutation: Sequence[int]) -> NewValue: ...
    def broadcast(
        self, value: Instruction | NewValue, dims: Sequence[int], dimensions: Sequence[int] = ...
    ) -> NewValue:
        """Adds a broadcast to ``dims``: dim ``i`` of the value becomes dim ``dimensions[i]``."""
    def convert(self, value: Instruction | NewValue, element_type: str) -> NewValue: ...
    def keep_extras(self, value: Instruction | NewValue) -> NewValue:
        """Gives a new instruction the sharding, frontend attributes and origin of the match."""
    def shape(self, value: Instruction | NewValue) -> Shape: ...

@final
class Rule:
    """A rewrite of one expression into another.

    Args:
        name: the name for reports and lists of passes; no other pass has it.
        pattern: what it looks for.
        replace: a function of the match and the replacement. It returns an instruction, what a
            method of the replacement returned, or ``None`` if the rule does not apply.
        law: the equation that it applies, in one line.
        numerics: the most that it does to floats: ``exact``, ``regrouping``, ``bounded`` or
            ``fast-math``. It does not apply where less is allowed.
        numerics_of: a function of the match that returns what the rule does to floats there, if
            that may be less than ``numerics``; with ``None`` it does not apply.
        when: conditions on the match, with words that follow "the expression must".
        say: a function of the match that returns two texts for notes, of a rewrite that was made
            (``multiplied once``) and of one that was not (``multiplying once``). With ``None``, and
            by default, notes state the law.
        always: apply it wherever it matches, not only where it pays.

    Raises:
        UsageError: there is no such class of numerics.
    """

    def __new__(
        cls,
        name: str,
        pattern: Pattern,
        replace: Callable[[Match, Replacement], Instruction | NewValue | None],
        *,
        law: str = "",
        numerics: str = "fast-math",
        numerics_of: Callable[[Match], str | None] | None = None,
        when: Sequence[tuple[str, Callable[[Match], object]]] = ...,
        say: Callable[[Match], tuple[str, str] | None] | None = None,
        always: bool = False,
    ) -> Rule: ...
    @property
    def name(self) -> str: ...
    @property
    def law(self) -> str: ...
    @property
    def numerics(self) -> str: ...
    def why_not(
        self, instruction: Instruction, *, exact: bool = False, fast_math: bool = True
    ) -> str | None:
        """Why the rule does not apply at an instruction; ``None`` if it does. Costs are not asked.

        Raises:
            Exception: what a function of the rule raised.
        """
    def caveats(self) -> list[str]:
        """Why the default pipeline may not make or keep the rewrites of the rule."""
    def try_on(self, first_seed: int, seeds: int) -> tuple[int, list[str] | None]:
        """See ``tilewright.try_rule``."""

@final
class RuleSet:
    """Rules that form one pass: at each instruction the first that matches is applied.

    Args:
        name: the name for reports and lists of passes; no other pass has it.
        rules: the rules, which are tried in this order.
        summary: what the pass does, in a few words.
    """

    def __new__(cls, name: str, rules: Sequence[Rule], *, summary: str = "") -> RuleSet: ...
    @property
    def name(self) -> str: ...
    @property
    def numerics(self) -> str:
        """What the rule does to floats that changes them the most."""
    @property
    def rules(self) -> list[Rule]: ...

@final
class Literal:
    """A value that the library reads."""

    @staticmethod
    def array(element_type: str, dims: Sequence[int], words: Any) -> Literal:
        """An array from a buffer of unsigned integers as wide as an element, or as each half of a
        complex one, which are copied.

        Raises:
            UsageError: there are not as many elements as the dims say.
        """
    @staticmethod
    def tuple(elements: Sequence[Literal]) -> Literal: ...
    @staticmethod
    def token() -> Literal: ...

@final
class Buffer:
    """A computed array. It hands its memory to NumPy by the buffer protocol, as bytes."""

    @property
    def element_type(self) -> str: ...
    @property
    def dims(self) -> tuple[int, ...]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def optimize(
    module: Module,
    target: str,
    *,
    numerics: str = "guarded",
    pipeline: str | None = None,
    passes: Sequence[str] | None = None,
    added: Sequence[Any] = ...,
    layers: bool = False,
) -> tuple[Module, str, str, str]:
    """Returns the module, the report as JSON and as text, and the explanation, by layers if that is
    asked for; see ``tilewright.optimize``."""

def candidates(
    module: Module, target: str, *, numerics: str = "guarded", name: str | None = None
) -> list[tuple[Module, str]]:
    """Returns the forms of a module to measure, the most promising first, each with what is known of
    it as JSON; with a name, the form of that name if there is one."""

class Race:
    """A race between forms of a module, of which the first is the original."""

    def __init__(self, candidates: int, seconds: float) -> None: ...
    @property
    def next(self) -> int | None:
        """The form to run next; none once the race is decided."""
    @property
    def rounds(self) -> int:
        """How many rounds count so far."""
    @property
    def winner(self) -> int | None:
        """The form that won, once the race is decided."""
    def record(self, seconds: float) -> None:
        """Records the seconds of the form to run next."""
    def take_out(self, lane: int, why: str) -> None:
        """Takes a form out of the race, and says why."""
    def end(self) -> None:
        """Ends the race with what is known."""
    def measured(self, forms: str) -> str:
        """Returns the times of all forms as JSON, for what is known of them as JSON."""

def widened(module: Module) -> Module | None:
    """Returns the same module with all floats in f64; none if they cannot be."""

def tune_table(measured: str) -> str:
    """Returns the times of forms, as JSON, as a table."""

def decisions_path() -> Path | None:
    """Returns the file of this user's decisions, if there is a place for it."""

def find_decision(path: Path, program: str) -> tuple[str | None, int]:
    """Returns the decision of a file for a program, both as JSON, and the number of lines that are
    no decisions. Raises ``OSError`` if the file cannot be read."""

def remember_decision(path: Path, decision: str) -> None:
    """Adds a decision, as JSON, to a file. Raises ``OSError`` if it cannot be written."""

def ffi_targets(minor: int) -> list[tuple[str, Any]]:
    """Returns the names of the custom calls of this CPU's kernels, each with its handler for an XLA
    with this minor version of the typed interface, as ``jax.ffi.register_ffi_target`` takes them.
    Raises ``UsageError`` if that version is too old."""

def sealed(module: Module) -> Module:
    """Returns a module as it is handed to XLA: calls of programs have their text. Raises ``Bug`` if a
    program is none."""

def run(
    module: Module,
    inputs: Sequence[Literal] | None,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    max_bytes: int | None = None,
    profile: bool = False,
    opaque_calls: bool = False,
) -> tuple[Any, list[Any], str, str]:
    """Returns the result, the values fed out, and the report as JSON and as text; see
    ``tilewright.run``."""

def simulate(
    module: Module,
    inputs: Sequence[Literal] | None,
    target: str,
    *,
    strategy: str | None = None,
    seed: int = 0,
    max_steps: int | None = None,
    max_bytes: int | None = None,
) -> tuple[Any, list[Any], str, str]:
    """As ``run``, on the simulated machine; see ``tilewright.simulate``."""

def check(
    a: Module,
    b: Module,
    *,
    seed: int = 0,
    seeds: int = 2,
    exact: bool = False,
    inputs: Sequence[Literal] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    replicas: int | None = None,
    partitions: int | None = None,
    max_steps: int | None = None,
    max_bytes: int | None = None,
    bisect: bool = False,
) -> tuple[str, str]:
    """Returns the report as JSON and as text; see ``tilewright.check``."""

def parameter_shapes(module: Module) -> list[Shape]:
    """The shapes of the entry's parameters, by number."""

def cost(module: Module, target: str) -> tuple[str, str]:
    """Returns the report as JSON and as text; see ``tilewright.cost``."""

def memory(module: Module, target: str) -> tuple[str, str]:
    """Returns the report as JSON and as text; see ``tilewright.memory``."""

def lower(
    module: Module, target: str, *, strategy: str | None = None, plan: bool = False
) -> tuple[str, str]:
    """Returns the report as JSON and as text; see ``tilewright.lower``."""

def graph(module: Module, shown: dict[str, Any], optimisation: dict[str, Any]) -> str:
    """Returns a picture; see ``Module.graph``."""

def report_page(
    module: Module,
    optimisation: dict[str, Any],
    *,
    check: bool = False,
    max_steps: int | None = None,
    max_bytes: int | None = None,
) -> str:
    """Returns a page; see ``Module.report``."""

def diff(a: Module, b: Module, *, metadata: bool = False, limit: int = 100) -> tuple[str, str, str]:
    """Returns the report as JSON, as text and as a page; see ``Module.diff``."""

def passes() -> tuple[str, str]:
    """Every pass and pipeline, as JSON and as text."""

def ops() -> tuple[str, str]:
    """Every op, as JSON and as text."""

def targets() -> tuple[str, str]:
    """Every built-in target, as JSON and as text."""

"""All that touches names of JAX which are not part of its public API.

Everything here is checked by the self-test in `_selftest.py` before it is used on a program.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
from jax._src import compiler, distributed, pjit
from jax._src.interpreters import pxla
from jax._src.lib import _jax  # type: ignore[attr-defined]
from jax._src.lib.mlir import ir  # type: ignore[attr-defined]
from jax._src.lib.mlir.dialects import func as func_dialect
from jax.extend import mlir as extend_mlir
from jax.extend.core.primitives import jit_p
from jax.interpreters import mlir
from jaxlib import xla_client

MAIN = "main"

Module = ir.Module
Context = ir.Context
MlirError = ir.MLIRError

LoweringRule = Callable[..., Any]
Compile = Callable[..., Any]


def lowering_rule() -> LoweringRule:
    """The rule by which `jit` within a traced function is lowered now."""
    return mlir._lowerings[jit_p].rule


def set_lowering_rule(rule: LoweringRule) -> None:
    """Lowers `jit` within traced functions by another rule from now on."""
    mlir.register_lowering(jit_p, rule, cacheable=False)


def compile_function() -> Compile:
    """The function by which JAX compiles every module now."""
    return compiler.compile_or_get_cached


def set_compile_function(function: Compile) -> None:
    """Compiles every module by another function from now on."""
    compiler.compile_or_get_cached = function


def compile_method() -> Compile:
    """The method by which JAX compiles what it has lowered."""
    return pxla.MeshComputation.compile


def set_compile_method(method: Compile) -> None:
    """Compiles whatever JAX has lowered by another method from now on."""
    pxla.MeshComputation.compile = method  # type: ignore[method-assign]


def call_function() -> Callable[..., Any]:
    """The function by which JAX runs a `jit` that is not compiled yet: its local `args` are the arguments."""
    return pjit._pjit_call_impl_python


def arguments_of_caller(depth: int) -> tuple[Any, ...] | None:
    """The arguments of the `jit` that is so many calls up the stack; none if it is no `jit`, but
    someone who compiles ahead of time."""
    frame = sys._getframe(depth)
    if frame.f_code is not call_function().__code__:
        return None
    return tuple(frame.f_locals["args"])


class Lowered:
    """What JAX has lowered and is about to compile: its `MeshComputation`."""

    def __init__(self, computation: Any) -> None:
        self.computation = computation
        self.module: Module = computation.stablehlo()
        args = computation.compile_args
        self.backend = args["backend"]
        self.number_of_devices = int(args["num_devices"])
        effects = args["ordered_effects"] or args["unordered_effects"] or args["host_callbacks"]
        # What changes mutable arrays must not run twice, either.
        self.is_pure = not effects and args["mut"] is None
        self.devices = tuple(computation._device_list or ())
        self.types = tuple(args["global_in_avals"])
        self.options = tuple(map(str, computation._compiler_options_kvs))
        self._kept = sorted(args["kept_var_idx"])
        self._constants = computation.const_args
        flags = computation._donated_invars
        donated = {at - len(self._constants) for at, is_so in zip(self._kept, flags) if is_so}
        self.donated = donated
        """The numbers of the arguments that are donated."""

    def with_module(self, module: Module) -> Any:
        """A `MeshComputation` with the same arguments and results, and this module."""
        made = copy.copy(self.computation)
        made._hlo, made._executable = module, None
        return made

    def kept(self, args: Iterable[Any]) -> list[Any]:
        """The arguments of `main`: constants, and those that are used."""
        every = [*self._constants, *args]
        return [every[at] for at in self._kept]

    def run(self, compiled: Any, args: Iterable[Any]) -> list[Any]:
        """The results of a compiled program."""
        constants = self._constants
        if hasattr(compiled, "shard_const_args"):
            constants = compiled.shard_const_args(constants)
        return list(compiled.unsafe_call(*constants, *args))


def computation_of(lowered: Any) -> Any:
    """The `MeshComputation` of what `jit(f).lower` returns."""
    return lowered._lowering


def distributed_client() -> Any:
    """The key-value store that the processes of a program share."""
    return distributed.global_state.client


def compiled_text(program: Any) -> str:
    """The HLO of a compiled program."""
    return "\n".join(module.to_string() for module in program.hlo_modules())


def platform_of(backend: Any) -> str:
    """The platform that functions are lowered for on a backend: all GPUs are `gpu` to PJRT."""
    if backend.platform != "gpu":
        return str(backend.platform)
    return "rocm" if "rocm" in backend.platform_version.lower() else "cuda"


def platforms(ctx: mlir.LoweringRuleContext) -> tuple[str, ...]:
    """The platforms that a function is lowered for; several only for an export."""
    return tuple(ctx.platforms or ctx.module_context.platforms)


def has_symbolic_dims(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether dims are known only when the function is called."""
    return bool(ctx.module_context.shape_poly_state.dim_vars)


def is_for_export(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether the module is to be run by other processes."""
    return bool(ctx.module_context.lowering_parameters.for_export)


# What hands arrays that lie in memory to the blocks in it.
_STORING = ("stablehlo.while", "sdy.manual_computation")


def are_stored(values: Iterable[Any], is_stored_around: bool) -> bool:
    """Whether all values lie in memory whoever reads them: arguments of `main`, what loops carry,
    constants, and arguments of another function if those `is_stored_around`. XLA might fuse others
    with their users."""

    def is_stored(value: Any) -> bool:
        # Some values of JAX are several ones here.
        if isinstance(value, (tuple, list)):
            return are_stored(value, is_stored_around)
        if isinstance(value, ir.OpResult):
            return bool(value.owner.name == CONSTANT)
        if not isinstance(value, ir.BlockArgument):
            return False
        op = value.owner.owner.operation
        if op.name == "func.func":
            return is_stored_around or ir.StringAttr(op.attributes["sym_name"]).value == MAIN
        return op.name in _STORING

    return all(is_stored(value) for value in values)


def is_for_one_device(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether the module is for a single device."""
    axes = ctx.module_context.axis_context
    if hasattr(axes, "num_devices"):
        return axes.num_devices in (None, 1)
    return getattr(getattr(axes, "mesh", None), "size", None) == 1


def is_local(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether shapes are those of one device: there is just one, or a `shard_map` over all axes
    of its mesh is around."""
    axes = ctx.module_context.axis_context
    mesh, manual = getattr(axes, "mesh", None), getattr(axes, "manual_axes", None)
    is_manual = mesh is not None and manual is not None and set(mesh.axis_names) <= set(manual)
    return is_manual or is_for_one_device(ctx)


def module_of(ctx: mlir.LoweringRuleContext) -> ir.Module:
    """The module that is being made."""
    return ctx.module_context.module


def functions(module: ir.Module) -> Iterator[func_dialect.FuncOp]:
    """The functions of a module."""
    for op in module.body.operations:
        if isinstance(op, func_dialect.FuncOp):
            yield op


def name_of(function: func_dialect.FuncOp) -> str:
    """The name of a function."""
    return ir.StringAttr(function.operation.attributes["sym_name"]).value


def integer_attribute(module: ir.Module, name: str, default: int) -> int:
    """An integer among the attributes of a module."""
    attributes = module.operation.attributes
    return ir.IntegerAttr(attributes[name]).value if name in attributes else default


def module_name(module: ir.Module) -> str:
    """The name of a module."""
    return ir.StringAttr(module.operation.attributes["sym_name"]).value


def copy_of(module: ir.Module) -> ir.Module:
    """A copy, which may be changed: JAX keeps modules that it may compile again."""
    with module.context:
        return ir.Module.parse(mlir.module_to_bytecode(module))


def _called(op: Any, found: set[str]) -> None:
    """Adds the names of the functions that an attribute or an op refers to."""
    if isinstance(op, ir.FlatSymbolRefAttr):
        found.add(op.value)
    elif isinstance(op, ir.ArrayAttr):
        for part in op:
            _called(part, found)


SHARDING = "sdy.sharding"
CONSTRAINT = "sdy.sharding_constraint"
CONSTANT = "stablehlo.constant"


class Contents(NamedTuple):
    """The names in a function, those of nested ops too."""

    op_names: list[str]
    callees: set[str]
    """The functions that it refers to."""
    is_sharded: bool
    """Whether an op says on which devices its results are."""


def contents(function: func_dialect.FuncOp) -> Contents:
    """The names in a function."""
    op_names: list[str] = []
    callees: set[str] = set()
    is_sharded = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal is_sharded
        op_names.append(op.name)
        attributes = op.attributes
        is_sharded |= SHARDING in attributes
        # A constant refers to no function, and jaxlib's binding aborts on complex elements.
        if op.name != CONSTANT:
            for index in range(len(attributes)):
                _called(attributes[index].attr, callees)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    return Contents(op_names, callees, is_sharded or CONSTRAINT in op_names)


def remove_shardings(function: func_dialect.FuncOp) -> None:
    """Removes what says on which devices the results of ops are."""
    constraints: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == CONSTRAINT:
            constraints.append(op)
        if SHARDING in op.attributes:
            del op.attributes[SHARDING]
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    for op in constraints:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()


def extract(module: ir.Module, name: str) -> tuple[ir.Module, list[Contents]]:
    """A module whose `main` is a copy of a function, with copies of all that it calls; and what
    is in them."""
    by_name = {name_of(function): function for function in functions(module)}
    found: dict[str, Contents] = {}
    with module.context, ir.Location.unknown():
        extracted = ir.Module.create()
        attributes = extracted.operation.attributes
        attributes["sym_name"] = ir.StringAttr.get(name)
        for count in ("mhlo.num_partitions", "mhlo.num_replicas"):
            attributes[count] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
        wanted = [name]
        while wanted:
            wants = wanted.pop()
            if wants in found or wants not in by_name:
                continue
            found[wants] = contents(by_name[wants])
            wanted.extend(sorted(found[wants].callees))
            copy = by_name[wants].operation.clone(ip=ir.InsertionPoint(extracted.body))
            if wants == name:
                for shell in ("arg_attrs", "res_attrs"):
                    if shell in copy.attributes:
                        del copy.attributes[shell]
                ir.SymbolTable.set_symbol_name(copy, MAIN)
                ir.SymbolTable.set_visibility(copy, "public")
    return extracted, list(found.values())


def only_callee(module: ir.Module) -> str | None:
    """The name of the function whose results `main` returns, if it does nothing else."""
    main = next((f for f in functions(module) if name_of(f) == MAIN), None)
    if main is None:
        return None
    ops = [op for op in main.regions[0].blocks[0].operations if op.operation.name != CONSTRAINT]
    if [op.operation.name for op in ops] != ["func.call", "func.return"]:
        return None
    return ir.FlatSymbolRefAttr(ops[0].operation.attributes["callee"]).value


# Ops of dialects that say how arrays lie on devices.
_PARTITIONED = ("sdy.", "mpmd.")

# How HLO has these ops: as custom calls with Shardy's words among the frontend attributes.
_FRONTEND = "mhlo.frontend_attributes"
_HLO_SHARDINGS = ("mhlo.sharding", _FRONTEND)


def shardings_come_back(module: ir.Module) -> bool:
    """Whether `restore_shardings` can undo how HLO has the shardings of a module: it has
    one mesh, and nothing but shardings of values and constraints."""
    meshes = [op for op in module.body.operations if op.operation.name == "sdy.mesh"]
    names = {name for function in functions(module) for name in contents(function).op_names}
    names.discard(CONSTRAINT)
    return len(meshes) == 1 and not any(name.startswith(_PARTITIONED) for name in names)


def restore_shardings(module: ir.Module) -> None:
    """Writes the shardings of a module that was made of HLO in Shardy's dialect again. Those of
    its arguments and results are dropped."""
    for function in functions(module):
        for shell in ("arg_attrs", "res_attrs"):
            if shell in function.operation.attributes:
                del function.operation.attributes[shell]
        stated: list[tuple[ir.Operation, str | None]] = []

        def visit(op: ir.Operation, stated: list[Any] = stated) -> ir.WalkResult:
            if any(name in op.attributes for name in _HLO_SHARDINGS):
                stated.append((op, _frontend_sharding(op)))
            return ir.WalkResult.ADVANCE

        function.operation.walk(visit)
        for op, sharding in stated:
            _restore_sharding(op.operation, sharding)


def verify_beside(module: ir.Module, other: ir.Module) -> None:
    """Verifies a module whose shardings refer to the mesh of another."""
    with module.context:
        meshes = [
            op.operation.clone(ip=ir.InsertionPoint.at_block_begin(module.body))
            for op in other.body.operations
            if op.operation.name == "sdy.mesh"
        ]
        module.operation.verify()
        for mesh in meshes:
            mesh.erase()


def _frontend_sharding(op: ir.Operation) -> str | None:
    """The sharding of the results of an op as HLO has it: `#sdy.sharding_per_value<[<...>]>`."""
    if _FRONTEND not in op.attributes:
        return None
    attributes = ir.DictAttr(op.attributes[_FRONTEND])
    name = "xla." + SHARDING
    return ir.StringAttr(attributes[name]).value if name in attributes else None


def _restore_sharding(op: ir.Operation, sharding: str | None) -> None:
    target = ""
    if op.name == "stablehlo.custom_call":
        target = ir.StringAttr(op.attributes["call_target_name"]).value
    if target == "xla.sdy.FuncResultSharding":
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
        return
    if sharding is None:
        return
    if target == "Sharding":
        one = sharding.removeprefix("#sdy.sharding_per_value<[").removesuffix("]>")
        with op.context, op.location, ir.InsertionPoint(op):
            attribute = ir.Attribute.parse("#sdy.sharding" + one)
            made = ir.Operation.create(
                CONSTRAINT, [op.results[0].type], [op.operands[0]], {"sharding": attribute}
            )
        op.results[0].replace_all_uses_with(made.results[0])
        op.erase()
        return
    with op.context:
        op.attributes[SHARDING] = ir.Attribute.parse(sharding)
    for name in _HLO_SHARDINGS:
        if name in op.attributes:
            del op.attributes[name]


def to_bytecode(module: ir.Module) -> bytes:
    """A module in MLIR's bytecode."""
    return bytes(mlir.module_to_bytecode(module))


def to_hlo(module: ir.Module) -> bytes:
    """The serialised `HloModuleProto` of a module, by jaxlib's conversion."""
    bytecode = to_bytecode(module)
    computation = _jax.mlir.mlir_module_to_xla_computation(bytecode, use_tuple_args=False)
    return bytes(computation.as_serialized_hlo_module_proto())


def to_stablehlo(proto: bytes) -> bytes:
    """A serialised `HloModuleProto` as StableHLO in bytecode, by jaxlib's conversion."""
    return bytes(extend_mlir.hlo_to_stablehlo(proto))


def executable(bytecode: bytes, device: Any) -> Callable[[list[Any]], list[Any]]:
    """A program in MLIR's bytecode, compiled for one device: a function of arrays on that device."""
    devices, options = xla_client.DeviceList((device,)), xla_client.CompileOptions()
    loaded = device.client.compile_and_load(bytecode, devices, options)

    def run(args: list[Any]) -> list[Any]:
        results = loaded.execute_sharded(args)
        return [shards[0] for shards in results.disassemble_into_single_device_arrays()]

    return run


def from_bytecode(bytecode: bytes, context: ir.Context) -> ir.Module:
    """The module in MLIR's bytecode, which is verified."""
    with context:
        return ir.Module.parse(bytecode)


def type_of(module: ir.Module, name: str) -> ir.Type | None:
    """The type of a function; none if there is no such function."""
    for function in functions(module):
        if name_of(function) == name:
            return ir.TypeAttr(function.operation.attributes["function_type"]).value
    return None


def types_of(module: ir.Module, name: str) -> tuple[list[str], list[str]]:
    """The types of the arguments and of the results of a function."""
    found = type_of(module, name)
    if found is None:
        raise KeyError(f"the module has no function `{name}`")
    type_ = ir.FunctionType(found)
    return [str(one) for one in type_.inputs], [str(one) for one in type_.results]


def replace_body(module: ir.Module, name: str, body: ir.Module, end: str) -> None:
    """Makes a function call `main` of another module, whose functions are moved here. The function
    keeps its name, its type and its attributes; the name of what it calls has this end."""
    with module.context, ir.Location.unknown():
        merged = mlir.merge_mlir_modules(module, f"{name}{end}", body)
        function = next(f for f in functions(module) if name_of(f) == name)
        block = function.regions[0].blocks[0]
        for op in reversed(list(block.operations)):
            op.operation.erase()
        results = ir.FunctionType(
            ir.TypeAttr(function.operation.attributes["function_type"]).value
        ).results
        with ir.InsertionPoint(block):
            call = func_dialect.CallOp(
                list(results), ir.FlatSymbolRefAttr.get(merged), list(block.arguments)
            )
            func_dialect.ReturnOp(list(call.results))


def is_rewritten(function: func_dialect.FuncOp) -> bool:
    """Whether `replace_body` has made a function call another one."""
    return any("_rewritten" in callee for callee in contents(function).callees)


def version() -> str:
    """The versions of JAX and jaxlib, for messages."""
    import jaxlib.version

    return f"jax {jax.__version__}, jaxlib {jaxlib.version.__version__}"

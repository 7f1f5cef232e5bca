"""StableHLO is read as jaxlib reads it, and jaxlib reads what is written."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tilewright as tw
from jax import export, lax
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

import tool
from engines import TPU_V5E
from entries import check_each

X = jax.ShapeDtypeStruct((4, 6, 8), jnp.float32)
W = jax.ShapeDtypeStruct((8, 5), jnp.float32)
IMAGE = jax.ShapeDtypeStruct((2, 9, 9, 4), jnp.float32)
KERNEL = jax.ShapeDtypeStruct((3, 3, 4, 8), jnp.float32)
N = jax.ShapeDtypeStruct((6,), jnp.int32)


def norm(x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def loop(x: jax.Array) -> jax.Array:
    offset = x.sum()
    return lax.fori_loop(0, 5, lambda i, y: y * 0.5 + offset + i, x)


def scanned(x: jax.Array) -> Any:
    return lax.scan(lambda carry, row: (carry + row, jnp.tanh(carry)), x[0], x)


def branch(x: jax.Array) -> jax.Array:
    return lax.cond(x[0, 0, 0] > 0, lambda y: y * 2, lambda y: jnp.exp(y), x)


def convolved(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(
        x, kernel, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def pooled(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "norm": (norm, (X,)),
    "norm gradient": (jax.grad(lambda x: (norm(x) ** 3).sum()), (X,)),
    "softmax": (jax.nn.softmax, (X,)),
    "product": (lambda x, w: jax.nn.gelu(x @ w), (X, W)),
    "loop": (loop, (X,)),
    "scan": (scanned, (X,)),
    "branch": (branch, (X,)),
    "convolution": (convolved, (IMAGE, KERNEL)),
    "convolution gradient": (
        jax.grad(lambda x, k: convolved(x, k).sum(), (0, 1)),
        (IMAGE, KERNEL),
    ),
    "pool": (pooled, (IMAGE,)),
    "pool gradient": (jax.grad(lambda x: pooled(x).sum()), (IMAGE,)),
    "gather": (lambda x, n: x[:, n % 6] + jnp.take(x, n % 8, axis=2).sum(), (X, N)),
    "scatter": (lambda x, n: x.at[:, n % 6].add(1.0), (X, N)),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x, axis=1)), (X,)),
    "top-k": (lambda x: lax.top_k(x, 3), (X,)),
    "random": (lambda n: jax.random.normal(jax.random.key(n[0]), (4, 5)), (N,)),
    "special functions": (
        lambda x: lax.erf(x) + lax.lgamma(x + 2) + lax.digamma(x + 2) + jnp.arccosh(x + 2),
        (X,),
    ),
    "integers": (lambda n: (n << 2) ^ (n // 3) | lax.population_count(n), (N,)),
    "cumulative": (lambda x: jnp.cumsum(x, 1) + lax.cummax(x, axis=2), (X,)),
}


# JAX lowers these to functions of CHLO, which portable artifacts do not have.
OF_CHLO = {"top-k", "random", "special functions"}


def test_rows_of_a_batch_are_selected() -> None:
    """XLA makes the numbers of the batch an array; HLO has them as dims since."""
    text = """module {
      func.func @main(%b: tensor<3x4x6xf32>, %i: tensor<3x2xi32>) -> (tensor<3x4x2xf32>, tensor<3x2x6xf32>) {
        %0 = "stablehlo.torch_index_select"(%b, %i) {dim = 2 : i64, batch_dims = 1 : i64}
          : (tensor<3x4x6xf32>, tensor<3x2xi32>) -> tensor<3x4x2xf32>
        %1 = "stablehlo.torch_index_select"(%b, %i) {dim = 1 : i64, batch_dims = 1 : i64}
          : (tensor<3x4x6xf32>, tensor<3x2xi32>) -> tensor<3x2x6xf32>
        return %0, %1 : tensor<3x4x2xf32>, tensor<3x2x6xf32>
      }
    }"""
    assert_equal(tw.Module.from_text(jaxlibs(text)), tw.Module.from_text(text))


@functools.cache
def lowered(name: str) -> jax.stages.Lowered:
    """A program as JAX lowers it."""
    function, args = PROGRAMS[name]
    return jax.jit(function).lower(*args)


def jaxlibs(text: str) -> str:
    """The HLO that jaxlib makes of a StableHLO text."""
    with mlir.make_ir_context():
        made = _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False)
        return made.as_hlo_text(True)


def forms(name: str) -> Iterator[tuple[str, tw.Module]]:
    """A program, read from each form in which JAX writes it."""
    program = lowered(name)
    text, operation = program.as_text(), program.compiler_ir("stablehlo").operation
    yield "pretty", tw.Module.from_text(text)
    yield "debug", tw.Module.from_text(program.as_text(debug_info=True))
    yield "generic", tw.Module.from_text(operation.get_asm(print_generic_op_form=True))
    written = io.BytesIO()
    operation.write_bytecode(written)
    yield "bytecode", tw.Module.load(written.getvalue())
    # Portable artifacts have no CHLO.
    if name not in OF_CHLO:
        artifact = stablehlo.serialize_portable_artifact_str(text, "1.0.0")
        yield "artifact", tw.Module.load(artifact)
    function, args = PROGRAMS[name]
    yield "exported", tw.Module.load(export.export(jax.jit(function))(*args).serialize())


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_jaxlibs_do(name: str) -> None:
    assert ("chlo." in lowered(name).as_text()) == (name in OF_CHLO)
    expected = tw.Module.from_text(jaxlibs(lowered(name).as_text()))
    read = dict(forms(name))
    assert len(read) == 5 + (name not in OF_CHLO)
    check_each([*read], lambda form: assert_equal(expected, read[form]))


def assert_equal(one: tw.Module, other: tw.Module) -> None:
    """Fails unless two modules compute the same."""
    report = tw.check(one, other)
    assert report.equal, str(report)


@pytest.mark.parametrize("name", PROGRAMS)
def test_jaxlib_reads_what_is_written(name: str) -> None:
    module = tw.Module.from_text(lowered(name).as_text("hlo"))
    assert_equal(module, tw.Module.from_text(jaxlibs(module.to_stablehlo())))
    with mlir.make_ir_context() as context:
        artifact = module.to_stablehlo_bytecode()
        read = stablehlo.deserialize_portable_artifact(context, artifact)
        text = str(ir.Module.parse(read) if isinstance(read, (bytes, str)) else read)
    assert_equal(module, tw.Module.from_text(jaxlibs(text)))


# Folders of programs that front ends wrote, and the targets of the engines that they go to.
FOLDERS = ("models", "real", "sharded", "torch")
TARGETS = ("tpu-like", "cpu")


def fixtures() -> list[Path]:
    """The programs, or a quarter of them."""
    all_files = [file for folder in FOLDERS for file in sorted((tool.FIXTURES / folder).rglob("*.hlo"))]
    return all_files if tool.IS_NIGHT else all_files[::4]


def test_jaxlib_takes_what_is_made_of_fixtures() -> None:
    def check(file: Path) -> None:
        module = tw.Module.from_text(file.read_text())
        try:
            jaxlibs(module.to_stablehlo())
        except tw.TilewrightError:
            return
        for target in TARGETS:
            text = tw.optimize(module, target).module.to_stablehlo()
            # Compilers behind PJRT take StableHLO, CHLO and functions, and none of MHLO.
            assert not re.search(r"= \"?mhlo\.", text), (target, re.findall(r"mhlo\.\w+", text))
            jaxlibs(text)

    check_each(fixtures(), check, lambda file: f"{file.parent.name}/{file.stem}")


@pytest.mark.skipif(not TPU_V5E.is_there, reason="libtpu, which compiles without a device, is missing")
def test_the_compiler_of_tpus_takes_what_is_made_of_fixtures() -> None:
    taken = 0

    def check(file: Path) -> None:
        nonlocal taken
        module = tw.Module.from_text(file.read_text())
        try:
            TPU_V5E.compiled(module.to_stablehlo())
        # It has no `f64` linear algebra, no callbacks, and no several devices here.
        except Exception:
            return
        taken += 1
        for target in TARGETS:
            TPU_V5E.compiled(tw.optimize(module, target).module.to_stablehlo())

    check_each(fixtures(), check, lambda file: f"{file.parent.name}/{file.stem}")
    assert taken > len(fixtures()) // 2


def test_values_are_those_of_jax() -> None:
    x = np.random.default_rng(0).normal(size=(4, 6, 8)).astype(np.float32)
    module = tw.Module.from_text(jax.jit(norm).lower(x).as_text())
    np.testing.assert_allclose(tw.run(module, x).output, norm(x), rtol=1e-5, atol=1e-5)


def test_errors_have_a_caret() -> None:
    text = jax.jit(norm).lower(X).as_text().replace("stablehlo.rsqrt", "stablehlo.rsqr", 1)
    with pytest.raises(tw.ParseError, match="did you mean `stablehlo.rsqrt`"):
        tw.Module.from_text(text)

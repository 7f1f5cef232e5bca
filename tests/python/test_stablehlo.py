"""StableHLO is read as jaxlib reads it, and jaxlib reads what is written."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

tw = pytest.importorskip("tilewright", reason="the package is not built")

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


def jaxlibs(text: str) -> str:
    """The HLO that jaxlib makes of a StableHLO text."""
    with mlir.make_ir_context():
        made = _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False)
        return made.as_hlo_text(True)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("form", ["pretty", "debug", "generic", "bytecode", "artifact", "exported"])
def test_programs_compute_what_jaxlibs_do(name: str, form: str) -> None:
    function, args = PROGRAMS[name]
    lowered = jax.jit(function).lower(*args)
    text = lowered.as_text()
    if form == "debug":
        module = tw.Module.from_text(lowered.as_text(debug_info=True))
    elif form == "generic":
        operation = lowered.compiler_ir("stablehlo").operation
        module = tw.Module.from_text(operation.get_asm(print_generic_op_form=True))
    elif form == "bytecode":
        written = io.BytesIO()
        lowered.compiler_ir("stablehlo").operation.write_bytecode(written)
        module = tw.Module.load(written.getvalue())
    elif form == "artifact":
        if "chlo." in text:
            pytest.skip("portable artifacts have no CHLO")
        module = tw.Module.load(stablehlo.serialize_portable_artifact_str(text, "1.0.0"))
    elif form == "exported":
        module = tw.Module.load(export.export(jax.jit(function))(*args).serialize())
    else:
        module = tw.Module.from_text(text)
    expected = tw.Module.from_text(jaxlibs(text))
    assert tw.check(expected, module).equal


@pytest.mark.parametrize("name", PROGRAMS)
def test_jaxlib_reads_what_is_written(name: str) -> None:
    function, args = PROGRAMS[name]
    module = tw.Module.from_text(jax.jit(function).lower(*args).as_text("hlo"))
    again = tw.Module.from_text(jaxlibs(module.to_stablehlo()))
    assert tw.check(module, again).equal
    with mlir.make_ir_context() as context:
        artifact = module.to_stablehlo_bytecode()
        read = stablehlo.deserialize_portable_artifact(context, artifact)
        text = str(ir.Module.parse(read) if isinstance(read, (bytes, str)) else read)
    assert tw.check(module, tw.Module.from_text(jaxlibs(text))).equal


def test_values_are_those_of_jax() -> None:
    x = np.random.default_rng(0).normal(size=(4, 6, 8)).astype(np.float32)
    module = tw.Module.from_text(jax.jit(norm).lower(x).as_text())
    np.testing.assert_allclose(tw.run(module, x).output, norm(x), rtol=1e-5, atol=1e-5)


def test_errors_have_a_caret() -> None:
    text = jax.jit(norm).lower(X).as_text().replace("stablehlo.rsqrt", "stablehlo.rsqr", 1)
    with pytest.raises(tw.ParseError, match="did you mean `stablehlo.rsqrt`"):
        tw.Module.from_text(text)

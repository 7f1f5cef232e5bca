"""Whole norms as custom calls of `native=True` beside what is compiled, each alone in a program.

    python benches/native_programs.py ["layer"] [--seconds 1]

A row is a norm and the dims of its array, then the least times in milliseconds of `jax.jit`, of
`tilewright.jit` without kernels, and of one custom call, run in turn, and how many times as fast as
both the call is. Memory of which a process was just given pages decides over times of arrays beyond
32 MB: `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` has pages of 2 MB for all.
`crates/rewrite/src/backend/native_calls/program_times.rs` has these.
"""

import argparse
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import tilewright
from native_calls import least, register

Norm = Callable[..., jax.Array | tuple[jax.Array, ...]]

EPSILON = 1e-5


def layer(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """A layer norm of rows."""
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + EPSILON) * scale + bias


def rms(x: jax.Array, scale: jax.Array) -> jax.Array:
    """An RMS norm of rows."""
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + EPSILON) * scale


def batch(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """A batch norm of columns."""
    return (x - x.mean(0)) * jax.lax.rsqrt(x.var(0) + EPSILON) * scale + bias


def group(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """A norm of eight groups of columns, for each 64 rows."""
    grouped = x.reshape(-1, 64, 8, x.shape[-1] // 8)
    mean = grouped.mean((1, 3), keepdims=True)
    variance = grouped.var((1, 3), keepdims=True)
    return ((grouped - mean) * jax.lax.rsqrt(variance + EPSILON)).reshape(x.shape) * scale + bias


def softmax(x: jax.Array) -> jax.Array:
    """Softmax of rows."""
    return jax.nn.softmax(x, -1)


def standardised(x: jax.Array) -> jax.Array:
    """A layer norm without parameters."""
    return layer(x, jnp.ones((), x.dtype), jnp.zeros((), x.dtype))


def gradients(norm: Norm) -> Norm:
    """The gradients of a norm, from those of its result. No value of a bias has a part in them."""

    def of(dy: jax.Array, x: jax.Array, *parameters: jax.Array) -> tuple[jax.Array, ...]:
        biases = [jnp.zeros_like(scale) for scale in parameters if norm in BIASED]
        return jax.vjp(norm, x, *parameters, *biases)[1](dy)

    return of


BIASED: list[Norm] = [layer, batch, group]
SCALED: list[Norm] = [*BIASED, rms]
NORMS: list[Norm] = [layer, standardised, rms, batch, group, softmax]

ARRAYS = [
    (2048, 512),
    (16384, 64),
    (4096, 1024),
    (65536, 64),
    (16384, 256),
    (262144, 16),
    (16384, 1024),
    (65536, 256),
    (262144, 64),
    (32768, 1024),
]


def timed(norm: Norm, args: list[jax.Array], seconds: float) -> list[float]:
    """The milliseconds that each way of computing a norm takes."""
    result = jax.eval_shape(norm, *args)
    module = tilewright.Module.load(jax.jit(norm).lower(*args))
    text = tilewright.optimize(module, pipeline="cleanup").module.to_text()

    def call(*args: jax.Array) -> jax.Array:
        return jax.ffi.ffi_call("tilewright_program", result)(*args, program=text)

    ways = [jax.jit(norm), tilewright.jit(norm), jax.jit(call)]
    runs = [lambda f=f: jax.block_until_ready(f(*args)) for f in ways]
    return [1e3 * time for time in least(runs, seconds)]


def main() -> None:
    """Prints a row for each norm, whose name begins with the argument, and array."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--seconds", type=float, default=0.6)
    options = parser.parse_args()
    register()
    generator = np.random.default_rng(0)
    forward = [(f.__name__, f, 1, (f in SCALED) + (f in BIASED)) for f in NORMS]
    backward = [(f"{f.__name__}, gradient", gradients(f), 2, int(f in SCALED)) for f in NORMS]
    for name, norm, arrays, parameters in forward + backward:
        for shape in ARRAYS if name.startswith(options.name) else []:
            dims = [shape] * arrays + [shape[-1:]] * parameters
            args = [jnp.asarray(generator.random(dim), jnp.float32) for dim in dims]
            own, stages, call = timed(norm, args, options.seconds)
            numbers = f"{own:.2f}\t{stages:.2f}\t{call:.2f}\t{min(own, stages) / call:.2f}"
            print(f"{name}\t{list(shape)}\t{numbers}", flush=True)


if __name__ == "__main__":
    main()

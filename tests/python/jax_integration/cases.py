"""Programs that use the features of `jax.jit`, for one device."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Jit = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """A program, made with either `jit`."""

    name: str
    make: Callable[[Jit], Callable[..., Any]]
    args: Callable[[], tuple[Any, ...]]
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)


CASES: list[Case] = []


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def case(*args: Any, **kwargs: Any) -> Callable[[Callable[[Jit], Any]], Callable[[Jit], Any]]:
    """Adds the program that a function makes, called with these arguments."""

    def add(make: Callable[[Jit], Any]) -> Callable[[Jit], Any]:
        fresh = functools.partial(jax.tree.map, _copied, args)
        CASES.append(Case(make.__name__, make, fresh, kwargs))
        return make

    return add


def numbers(*dims: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Random numbers."""
    return np.random.default_rng(seed).standard_normal(dims).astype(dtype)


IMAGE = numbers(2, 8, 8, 64)
SCALE, BIAS = numbers(64, seed=1), numbers(64, seed=2)


def group_norm(x: Any, scale: Any = 1.0, bias: Any = 0.0, groups: int = 8) -> Any:
    """Group norm of an image, channels last."""
    grouped = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)
    mean = grouped.mean((1, 2, 4), keepdims=True)
    var = ((grouped - mean) ** 2).mean((1, 2, 4), keepdims=True)
    return ((grouped - mean) * jax.lax.rsqrt(var + 1e-5)).reshape(x.shape) * scale + bias


def loss(x: Any, scale: Any, bias: Any) -> Any:
    """A scalar of a group norm."""
    return (jax.nn.silu(group_norm(x, scale, bias)) ** 2).mean()


@case(IMAGE, SCALE, BIAS)
def forward(jit: Jit) -> Any:
    return jit(group_norm)


@case(IMAGE, SCALE, BIAS)
def decorated(jit: Jit) -> Any:
    @jit
    def f(x, scale, bias):
        return group_norm(x, scale, bias)

    return f


@case(IMAGE, SCALE, BIAS)
def value_and_grad_inside(jit: Jit) -> Any:
    return jit(jax.value_and_grad(loss, (0, 1, 2)))


@case(IMAGE, SCALE, BIAS)
def grad_of_jit(jit: Jit) -> Any:
    return jax.grad(jit(loss), (0, 1, 2))


@case(IMAGE, SCALE, BIAS)
def vjp_of_jit(jit: Jit) -> Any:
    def f(x, scale, bias):
        out, pull = jax.vjp(jit(group_norm), x, scale, bias)
        return pull(jnp.cos(out))

    return f


@case(IMAGE, SCALE, BIAS)
def jvp_of_jit(jit: Jit) -> Any:
    f = jit(group_norm)
    return lambda x, scale, bias: jax.jvp(f, (x, scale, bias), (x * 0.5, scale, bias))


@case(IMAGE, SCALE, BIAS)
def jvp_of_grad(jit: Jit) -> Any:
    f = jit(jax.grad(loss))
    return lambda x, s, b: jax.jvp(lambda x: f(x, s, b), (x,), (jnp.cos(x),))


@case(IMAGE, SCALE, BIAS)
def jacobian_row(jit: Jit) -> Any:
    f = jit(lambda x, s, b: group_norm(x, s, b).sum((1, 2))[:, :2])
    return lambda x, s, b: jax.jacrev(f, 1)(x, s, b)


@case(numbers(3, 2, 4, 4, 16))
def vmap_of_jit(jit: Jit) -> Any:
    return jax.vmap(jit(functools.partial(group_norm, groups=4)))


@case(numbers(3, 2, 4, 4, 16))
def vmap_of_grad_of_jit(jit: Jit) -> Any:
    f = jit(lambda x: (group_norm(x, groups=4) ** 3).sum())
    return jax.jit(jax.vmap(jax.grad(f)))


@case(IMAGE, numbers(4, 64))
def scan_outside(jit: Jit) -> Any:
    f = jit(group_norm)

    def run(x, scales):
        return jax.lax.scan(lambda c, s: (f(c, s), c.mean()), x, scales)

    return run


@case(IMAGE, numbers(4, 64))
def scan_inside(jit: Jit) -> Any:
    def run(x, scales):
        return jax.lax.scan(lambda c, s: (group_norm(c, s), c.mean()), x, scales)

    return jit(run)


@case(IMAGE, np.int32(3))
def while_inside(jit: Jit) -> Any:
    def run(x, n):
        return jax.lax.fori_loop(0, n, lambda i, x: group_norm(x) + i, x)

    return jit(run)


@case(IMAGE, np.bool_(True))
def cond_around(jit: Jit) -> Any:
    f = jit(group_norm)
    return lambda x, p: jax.lax.cond(p, f, lambda x: x * 2, x)


@case(IMAGE, np.int32(1))
def switch_inside(jit: Jit) -> Any:
    return jit(lambda x, i: jax.lax.switch(i, [jnp.sin, group_norm, jnp.cos], x))


@case(IMAGE, SCALE, BIAS)
def remat_inside(jit: Jit) -> Any:
    return jit(jax.grad(lambda x, s, b: jax.checkpoint(loss)(x, s, b)))


@case(IMAGE, SCALE, BIAS)
def remat_of_jit(jit: Jit) -> Any:
    return jax.grad(jax.checkpoint(jit(loss)))


@case(IMAGE)
def custom_vjp(jit: Jit) -> Any:
    @jax.custom_vjp
    def f(x):
        return group_norm(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (group_norm(g) * 2 + x,))
    return jax.grad(lambda x: (jit(f)(x) ** 2).sum())


@case(IMAGE)
def custom_jvp(jit: Jit) -> Any:
    @jax.custom_jvp
    def f(x):
        return group_norm(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * group_norm(*primals)))
    return jit(jax.grad(lambda x: (f(x) ** 2).sum()))


@case(IMAGE, SCALE)
def nested(jit: Jit) -> Any:
    inner = jit(group_norm)
    return jit(lambda x, s: inner(inner(x, s) + 1, s).sum((1, 2)))


@case(IMAGE, SCALE)
def in_plain_jit(jit: Jit) -> Any:
    inner = jit(group_norm)
    return jax.jit(lambda x, s: inner(x, s) + inner(jnp.sin(x), s))


@case(IMAGE, 4)
def static_argnums(jit: Jit) -> Any:
    return jit(lambda x, groups: group_norm(x, groups=groups), static_argnums=1)


@case(IMAGE, groups=4)
def static_argnames(jit: Jit) -> Any:
    return jit(lambda x, *, groups: group_norm(x, groups=groups), static_argnames="groups")


@case({"x": IMAGE, "p": (SCALE, [BIAS, None])})
def pytrees(jit: Jit) -> Any:
    @jit
    def f(tree):
        scale, (bias, nothing) = tree["p"]
        return {"y": group_norm(tree["x"], scale, bias), "none": nothing, "list": [scale]}

    return f


@case(IMAGE, SCALE, BIAS)
def donation(jit: Jit) -> Any:
    return jit(lambda x, s, b: (group_norm(x, s, b), b + 1), donate_argnums=(0, 2))


@case(IMAGE, SCALE, BIAS)
def donated_by_name(jit: Jit) -> Any:
    return jit(lambda x, s, b: group_norm(x, s, b), donate_argnames="x")


@case(IMAGE, SCALE)
def unused_argument(jit: Jit) -> Any:
    return jit(lambda x, s: group_norm(x))


@case(IMAGE, SCALE)
def kept_unused_argument(jit: Jit) -> Any:
    return jit(lambda x, s: group_norm(x), keep_unused=True)


@case(IMAGE)
def inlined(jit: Jit) -> Any:
    return jit(lambda x: group_norm(x), inline=True)


@case(IMAGE, SCALE)
def argument_is_output(jit: Jit) -> Any:
    return jit(lambda x, s: (x, s, group_norm(x)))


@case(IMAGE)
def duplicate_outputs(jit: Jit) -> Any:
    def f(x):
        y = group_norm(x)
        return y, y, y + 1

    return jit(f)


@case(IMAGE)
def constant_output(jit: Jit) -> Any:
    return jit(lambda x: (group_norm(x), jnp.arange(5), 3.0))


@case(IMAGE)
def closed_over_arrays(jit: Jit) -> Any:
    scale, big = jnp.asarray(SCALE), jnp.asarray(numbers(8, 8, 64))
    return jit(lambda x: group_norm(x, scale) + big)


@case(IMAGE, 2.0)
def weak_types(jit: Jit) -> Any:
    return jit(lambda x, k: (group_norm(x) * k, k + 1))


@case(IMAGE.astype(jnp.bfloat16), SCALE.astype(jnp.bfloat16))
def bf16(jit: Jit) -> Any:
    return jit(group_norm)


@case(IMAGE.astype(np.float16))
def f16(jit: Jit) -> Any:
    return jit(group_norm)


@case(numbers(4, 64).astype(jnp.float8_e4m3fn), IMAGE)
def fp8(jit: Jit) -> Any:
    return jit(lambda w, x: group_norm(x) @ w.astype(jnp.float32).T)


@case(np.arange(64, dtype=np.int32).reshape(4, 16) % 8, IMAGE)
def int4(jit: Jit) -> Any:
    return jit(lambda w, x: (w.astype(jnp.int4).astype(jnp.int32).sum(), group_norm(x)))


@case(numbers(2, 8, 8, 64).astype(np.complex64))
def complex_numbers(jit: Jit) -> Any:
    return jit(lambda x: jnp.fft.fft(x, axis=1) + group_norm(x.real))


@case(np.uint32(3), IMAGE)
def raw_keys(jit: Jit) -> Any:
    return jit(lambda seed, x: group_norm(x + jax.random.normal(jax.random.PRNGKey(seed), x.shape)))


@case(np.uint32(3), IMAGE)
def typed_keys(jit: Jit) -> Any:
    inner = jit(lambda key, x: (jax.random.split(key)[0], x + jax.random.uniform(key, x.shape)))

    def f(seed, x):
        key, y = inner(jax.random.key(seed), x)
        return jax.random.key_data(key), group_norm(y)

    return f


@case(np.uint32(3), IMAGE)
def rbg_keys(jit: Jit) -> Any:
    def f(seed, x):
        key = jax.random.key(seed, impl="rbg")
        return group_norm(x + jax.random.normal(key, x.shape))

    return jit(f)


@case(IMAGE)
def pure_callback(jit: Jit) -> Any:
    def f(x):
        y = jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return group_norm(y)

    return jit(f)


@case(IMAGE)
def io_callback(jit: Jit) -> Any:
    from jax.experimental import io_callback as call

    def f(x):
        y = call(lambda x: np.cos(x), jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return group_norm(y)

    return jit(f)


@case(IMAGE)
def ordered_callback(jit: Jit) -> Any:
    from jax.experimental import io_callback as call

    def f(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        y = call(lambda x: np.cos(x), shape, x, ordered=True)
        z = call(lambda x: x + 1, shape, group_norm(y), ordered=True)
        return z

    return jit(f)


@case(IMAGE)
def debug_print(jit: Jit) -> Any:
    def f(x):
        jax.debug.print("mean {m}", m=x.mean())
        return group_norm(x)

    return jit(f)


@case(IMAGE)
def debug_callback_ordered(jit: Jit) -> Any:
    def f(x):
        jax.debug.callback(lambda m: None, x.mean(), ordered=True)
        return group_norm(x)

    return jit(f)


@case(numbers(8, 8), IMAGE)
def lapack(jit: Jit) -> Any:
    def f(a, x):
        q, r = jnp.linalg.qr(a)
        return q @ r, jnp.linalg.cholesky(a @ a.T + jnp.eye(8)), group_norm(x)

    return jit(f)


@case(numbers(64, 64), IMAGE)
def precision(jit: Jit) -> Any:
    return jit(lambda a, x: jnp.dot(group_norm(x), a, precision="highest"))


@case(IMAGE, numbers(3, 3, 64, 64))
def convolution(jit: Jit) -> Any:
    def f(x, w):
        dims = ("NHWC", "HWIO", "NHWC")
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dims)
        return group_norm(y)

    return jit(jax.grad(lambda x, w: (f(x, w) ** 2).mean(), (0, 1)))


@case(numbers(40, 8), np.arange(10, dtype=np.int32))
def indexing(jit: Jit) -> Any:
    return jit(lambda x, i: (x[i], x.at[i].add(1.0), jnp.sort(x, 0), jax.lax.top_k(x, 3)))


@case(numbers(0, 8, 8, 64))
def empty_arrays(jit: Jit) -> Any:
    return jit(group_norm)


@case(np.float32(2.0))
def scalars(jit: Jit) -> Any:
    return jit(lambda x: x * 2 + 1)


@case(IMAGE)
def named_scopes(jit: Jit) -> Any:
    def f(x):
        with jax.named_scope("norm"):
            return group_norm(x)

    return jit(f)


@case(IMAGE)
def optimization_barrier(jit: Jit) -> Any:
    return jit(lambda x: group_norm(jax.lax.optimization_barrier(group_norm(x))))


@case(IMAGE)
def composite(jit: Jit) -> Any:
    f = jax.lax.composite(lambda x: group_norm(x), "test.norm", version=1)
    return jit(lambda x: f(x) + 1)


@case(IMAGE)
def compiler_options(jit: Jit) -> Any:
    return jit(group_norm, compiler_options={"xla_cpu_enable_fast_math": False})


@case(IMAGE)
def custom_linear_solve(jit: Jit) -> Any:
    def f(x):
        solved = jax.scipy.sparse.linalg.cg(lambda v: 2 * v, x)[0]
        return group_norm(solved)

    return jit(f)


@case(IMAGE)
def stop_gradient(jit: Jit) -> Any:
    return jit(jax.grad(lambda x: (group_norm(x) * jax.lax.stop_gradient(x)).sum()))


@case(IMAGE)
def with_memory_kind(jit: Jit) -> Any:
    device = jax.devices()[0]
    sharding = jax.sharding.SingleDeviceSharding(device)
    return jit(group_norm, in_shardings=sharding, out_shardings=sharding)


@case(IMAGE)
def constraint_on_one_device(jit: Jit) -> Any:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), "a")
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("a"))
    return jit(lambda x: group_norm(jax.lax.with_sharding_constraint(x, sharding)))


@case(IMAGE)
def layout_of_output(jit: Jit) -> Any:
    from jax.experimental.layout import Format, Layout

    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return jit(group_norm, out_shardings=Format(Layout((3, 2, 1, 0)), device))


@case(numbers(2, 3, 3, 64))
def bound_method(jit: Jit) -> Any:
    class Norm:
        groups = 4

        def __call__(self, x):
            return group_norm(x, groups=self.groups)

        @functools.partial(jit, static_argnums=0)
        def method(self, x):
            return group_norm(x, groups=self.groups)

    return lambda x: (jit(Norm())(x), Norm().method(x), jit(functools.partial(group_norm))(x))

"""The program of the pictures of `report` and `--explain`: the gradient of three blocks with norms.

Prints StableHLO with the names of scopes and the lines of this file. Nothing runs.
"""

import jax
import jax.numpy as jnp

GROUPS = 32


def group_norm(x, scale, bias):
    b, h, w, c = x.shape
    y = x.reshape(b, h, w, GROUPS, c // GROUPS)
    y = y - y.mean((1, 2, 4), keepdims=True)
    y = y * jax.lax.rsqrt((y * y).mean((1, 2, 4), keepdims=True) + 1e-5)
    return y.reshape(x.shape) * scale + bias


def block(x, weights):
    with jax.named_scope("norm"):
        y = group_norm(x, weights["scale"], weights["bias"])
    with jax.named_scope("dense"):
        return x + jax.nn.silu(y) @ weights["kernel"]


def loss(weights, x):
    for name in ("down", "middle", "up"):
        with jax.named_scope(name):
            x = block(x, weights[name])
    return (x * x).mean()


def shapes(channels):
    shape = jax.ShapeDtypeStruct
    one = {
        "scale": shape((channels,), jnp.float32),
        "bias": shape((channels,), jnp.float32),
        "kernel": shape((channels, channels), jnp.float32),
    }
    return {"down": one, "middle": one, "up": one}, shape((2, 32, 32, channels), jnp.float32)


if __name__ == "__main__":
    # The folder of a checkout is of no interest.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    step = jax.jit(jax.value_and_grad(loss)).lower(*shapes(channels=320))
    print(step.as_text(debug_info=True))

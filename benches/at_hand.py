"""Devices of this machine: whether there is one of a kind, and how long modules take on it."""

from __future__ import annotations

import glob
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

# The files that a driver makes for devices of a platform, and what XLA is told before it starts.
FILES = {"gpu": ("/dev/nvidia[0-9]*",), "tpu": ("/dev/accel[0-9]*", "/dev/vfio/[0-9]*")}
FLAGS = {"gpu": "--xla_gpu_collect_cost_model_stats=true"}
# Every module runs at least so often, and for so long.
LEAST_RUNS, LEAST_SECONDS = 20, 0.5


def device(engine: str) -> Any | None:
    """A device for an engine that this Python's JAX can use, which estimates costs from now on; none if there
    is none."""
    platform = "tpu" if engine.startswith("tpu") else "gpu"
    if not any(glob.glob(pattern) for pattern in FILES[platform]):
        return None
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS.get(platform, '')}"
    try:
        import jax

        return jax.devices(platform)[0]
    except (ImportError, RuntimeError):
        return None


def seconds(device: Any, texts: Sequence[str]) -> list[float]:
    """The median seconds of StableHLO modules with the same arguments, run in turn on a device."""
    runs = [_runner(device, text) for text in texts]
    times: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run()
    end = time.perf_counter() + LEAST_SECONDS * len(runs)
    while len(times[0]) < LEAST_RUNS or time.perf_counter() < end:
        for run, taken in zip(runs, times):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def _runner(device: Any, text: str) -> Callable[[], object]:
    """What runs a module on normal values and waits for its results."""
    import jax
    import numpy as np
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib import _jax
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        options, devices = xla_client.CompileOptions(), xla_client.DeviceList((device,))
        loaded = device.client.compile_and_load(module, devices, options)
    shapes = _jax.mlir.mlir_module_to_xla_computation(text).program_shape().parameter_shapes()
    draw = np.random.default_rng(1)
    values = [draw.standard_normal(one.dimensions()).astype(one.numpy_dtype()) for one in shapes]
    placed = [jax.device_put(value, device) for value in values]

    def run() -> object:
        results = loaded.execute_sharded(placed).disassemble_into_single_device_arrays()
        return jax.block_until_ready(results)

    return run

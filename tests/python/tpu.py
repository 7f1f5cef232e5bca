"""Google's compiler for TPUs, asked without a TPU: `pip install libtpu`, which is optional."""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import Any

import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir

IS_THERE = importlib.util.find_spec("libtpu") is not None

_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "TPU_TOPOLOGY": "2x4",
    "TPU_CHIPS_PER_HOST_BOUNDS": "2,4,1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


@functools.cache
def devices() -> list[Any]:
    """The chips of a machine with eight TPUs v5e."""
    from jax.experimental import topologies

    os.environ.update(_ENVIRONMENT)
    return list(topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices)


def compile_text(text: str) -> Any:
    """Compiles StableHLO for one chip; raises what the compiler says."""
    chip = devices()[0]
    options = xla_client.CompileOptions()
    assignment = xla_client.DeviceAssignment.create(np.array([[chip.id]]))
    options.executable_build_options.device_assignment = assignment
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        return chip.client.compile(module, xla_client.DeviceList((chip,)), options)

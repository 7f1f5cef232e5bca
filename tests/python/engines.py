"""The compilers of TPUs and GPUs, asked without a device.

`pip install libtpu` is the one of TPUs, `packages(H100)` are the one of GPUs. Both are optional: what asks them
is skipped where they are missing. They compile StableHLO for a device that is not there, and say in the module
that they print what they estimate for each kernel.
"""

from __future__ import annotations

import functools
import glob
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir


@dataclass(frozen=True)
class Engine:
    """A compiler for devices of a kind."""

    name: str
    # The package whose presence says that the compiler is installed.
    package: str
    # What pip installs, without what these depend on.
    requirements: tuple[str, ...]
    # The environment in which the process starts.
    environment: dict[str, str]
    # The unit of its estimates.
    unit: str
    devices: Callable[[], list[Any]]

    @property
    def is_there(self) -> bool:
        """Whether the compiler is installed."""
        return importlib.util.find_spec(self.package) is not None

    def compiled(self, text: str, device: Any = None) -> str:
        """What the compiler makes of StableHLO for one device, as HLO text; raises what it says."""
        device = device or self.devices()[0]
        options = xla_client.CompileOptions()
        assignment = xla_client.DeviceAssignment.create(np.array([[device.id]]))
        options.executable_build_options.device_assignment = assignment
        with mlir.make_ir_context():
            module = ir.Module.parse(text)
            made = device.client.compile(module, xla_client.DeviceList((device,)), options)
        return made.hlo_modules()[0].to_string()


def _tpu(name: str, accelerator: str, topology: str, chips: str) -> Engine:
    environment = {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": accelerator,
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_WORKER_ID": "0",
        "TPU_TOPOLOGY": topology.split(":")[1],
        "TPU_CHIPS_PER_HOST_BOUNDS": chips,
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }

    @functools.cache
    def devices() -> list[Any]:
        from jax.experimental import topologies

        os.environ.update(environment)
        described = topologies.get_topology_desc(platform="tpu", topology_name=topology)
        return list(described.devices)

    return Engine(name, "libtpu", ("libtpu==0.0.52",), environment, "cycles", devices)


# What XLA asks of the card: the figures of an H100 SXM, from CUDA's device query and NVIDIA's data sheet.
_CARD = """
gpu_device_info {
  core_count: 132 fpus_per_core: 128 memory_bandwidth: 3352320000000 l2_cache_size: 52428800
  clock_rate_ghz: 1.98 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448 threads_per_warp: 32 threads_per_block_limit: 1024
  threads_per_core_limit: 2048 registers_per_core_limit: 65536 registers_per_block_limit: 65536
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  device_memory_size: 84929347584 cuda_compute_capability { major: 9 }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 12 }
runtime_version { major: 13 }
"""


@functools.cache
def _cards() -> list[Any]:
    import jax
    from jaxlib import _jax

    jax.devices("cpu")
    [plugin] = glob.glob(f"{sys.prefix}/lib/python3*/site-packages/jax_plugins/xla_cuda13/*plugin*.so")
    # JAX has looked for devices by now, and loads the plugin if it finds it.
    if not xla_client.pjrt_plugin_loaded("cuda"):
        xla_client.load_pjrt_plugin_dynamically("cuda", plugin)
    if not xla_client.pjrt_plugin_initialized("cuda"):
        xla_client.initialize_pjrt_plugin("cuda")
    options = {"target_config": _CARD, "topology": "1x1x1"}
    topology = _jax.get_default_c_api_topology("cuda", "", options)
    return list(topology._make_compile_only_devices())


TPU_V5E = _tpu("tpu-v5e", "v5litepod-8", "v5e:2x4", "2,4,1")
TPU_V6E = _tpu("tpu-v6e", "v6e-4", "v6e:2x2", "2,2,1")
H100 = Engine(
    "xla-gpu-h100",
    "jax_plugins.xla_cuda13",
    (
        "jax-cuda13-pjrt==0.12.0.1",
        "jax-cuda13-plugin==0.12.0.1",
        "nvidia-cuda-nvcc",
        "nvidia-nvvm",
        "nvidia-nvjitlink",
        "nvidia-cuda-runtime",
    ),
    # No kernels are timed, and each says what it is taken to cost.
    {"XLA_FLAGS": "--xla_gpu_autotune_level=0 --xla_gpu_collect_cost_model_stats=true"},
    "us",
    _cards,
)
ENGINES = {engine.name: engine for engine in (TPU_V5E, TPU_V6E, H100)}

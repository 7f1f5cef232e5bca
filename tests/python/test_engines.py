"""What the compilers of TPUs and GPUs say, read from modules as they print them."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import pytest

import tool

sys.path.insert(0, str(tool.ROOT / "benches"))

import at_hand
from compiled import Module

TPU = """HloModule jit_f, is_scheduled=true

%fused_computation (param_0: f32[8,128]) -> f32[8,128] {
  %param_0 = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT %add.9 = f32[8,128]{1,0:T(8,128)} add(%param_0, %param_0), backend_config={"estimated_cycles":"7"}
}

%body (arg: (s32[], f32[8,128])) -> (s32[], f32[8,128]) {
  %arg = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) parameter(0)
  %i = s32[]{:T(128)} get-tuple-element(%arg), index=0
  %y = f32[8,128]{1,0:T(8,128)} get-tuple-element(%arg), index=1
  %z = f32[8,128]{1,0:T(8,128)} fusion(%y), kind=kLoop, calls=%fused_computation, backend_config={"estimated_cycles":"10"}
  ROOT %next = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) tuple(%i, %z)
}

%condition (arg.1: (s32[], f32[8,128])) -> pred[] {
  %arg.1 = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) parameter(0)
  ROOT %less = pred[]{:T(512)} constant(true)
}

%yes (a: f32[8,128]) -> f32[8,128] {
  %a = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT %b = f32[8,128]{1,0:T(8,128)} negate(%a), backend_config={"estimated_cycles":"3"}
}

%no (c: f32[8,128]) -> f32[8,128] {
  ROOT %c = f32[8,128]{1,0:T(8,128)} parameter(0)
}

ENTRY %main (x: f32[8,128]) -> f32[8,128] {
  %x = f32[8,128]{1,0:T(8,128)} parameter(0)
  %both = (f32[8,128]{1,0:T(8,128)}, f32[8]{0:T(256)}) fusion(%x, %x), kind=kOutput, calls=%fused_computation, backend_config={"estimated_cycles":"100"}
  %first = f32[8,128]{1,0:T(8,128)} get-tuple-element(%both), index=0
  %zero = s32[]{:T(128)} constant(0)
  %state = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) tuple(%zero, %first)
  %loop = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) while(%state), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"5"},"estimated_cycles":"1"}
  %out = f32[8,128]{1,0:T(8,128)} get-tuple-element(%loop), index=1
  %call = f32[8,128]{1,0:T(8,128)} custom-call(%out), custom_call_target="other"
  %sum-start = f32[8,128]{1,0:T(8,128)} all-reduce-start(%call), to_apply=%no, backend_config={"estimated_cycles":"20"}
  %sum = f32[8,128]{1,0:T(8,128)} all-reduce-done(%sum-start)
  %flag = pred[]{:T(512)} constant(true)
  ROOT %chosen = f32[8,128]{1,0:T(8,128)} conditional(%flag, %call, %call), true_computation=%yes, false_computation=%no
}
"""

GPU = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: bf16[4,100]) -> bf16[4,100] {
  %x = bf16[4,100]{1,0} parameter(0)
  ROOT %f = bf16[4,100]{1,0} fusion(%x), kind=kLoop, calls=%g, backend_config={"reification_cost":[{"end_to_end_cycles":9,"exec_time_us":2.5,"name":""},{"exec_time_us":1.25e0,"name":"indexing-cost-model"},{"exec_time_us":0.01,"name":"sol"}]}
}
"""


def test_cycles_of_a_tpu_are_added_up() -> None:
    """100 of the fusion, 5 times 10 of the loop's body, 20 of the exchange, 3 of the dearer branch; the call has
    none. Each kernel reads and writes arrays of 4 kB: the fusion 2 (it reads one array), each turn 2, the call,
    the exchange and the branch 2 each."""
    cost, kernels, sweeps, unknown = Module(TPU).estimate()
    assert (cost, kernels, unknown) == (173.0, 9, {"custom-call": 1})
    assert sweeps == pytest.approx(2 + 5 * 2 + 3 * 2)


def test_the_first_branch_of_a_guard_counts() -> None:
    """The second one, which returns what it gets, costs nothing; as a guard, the first one counts."""
    swapped = TPU.replace("true_computation=%yes, false_computation=%no", "branch_computations={%no, %yes}")
    guard = swapped.replace("={%no, %yes}", '={%no, %yes}, frontend_attributes={tilewright_guard="sums"}')
    assert [Module(text).estimate()[0] for text in (TPU, swapped, guard)] == [173.0, 173.0, 170.0]


def test_the_model_of_tiled_kernels_counts_where_there_is_one() -> None:
    assert Module(GPU).estimate() == (1.25, 1, 2.0, {})
    assert Module(GPU.replace("indexing-cost-model", "other")).estimate() == (2.5, 1, 2.0, {})


SUM = """module @jit_f {
  func.func public @main(%x: tensor<64x64xf32>, %n: tensor<64xi32>) -> tensor<64x64xf32> {
    %0 = stablehlo.convert %n : (tensor<64xi32>) -> tensor<64xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
    %2 = stablehlo.add %x, %1 : tensor<64x64xf32>
    return %2 : tensor<64x64xf32>
  }
}
"""


def test_modules_run_in_turn_on_a_device_that_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_hand, "LEAST_SECONDS", 0.0)
    times = at_hand.seconds(jax.devices("cpu")[0], [SUM, SUM.replace("add", "multiply")])
    assert len(times) == 2 and all(0 < seconds < 1 for seconds in times)


def test_no_device_is_at_hand_without_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_hand, "FILES", {"gpu": ("/nowhere/[0-9]",), "tpu": ()})
    assert at_hand.device("xla-gpu-h100") is None
    assert at_hand.device("tpu-v5e") is None


def test_no_device_is_at_hand_that_jax_does_not_find(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(at_hand, "FILES", {"gpu": (f"{tmp_path}/nvidia[0-9]",), "tpu": ()})
    monkeypatch.setenv("XLA_FLAGS", "")
    assert at_hand.device("xla-gpu-h100") is None

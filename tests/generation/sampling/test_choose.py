"""Which sampler draws from which logits."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from structgen.errors import BitmaskError
from structgen.generation.sampling import choose
from structgen.generation.sampling.choose import sampler_for
from structgen.generation.sampling.host import HostSampler


def test_the_host_draws_from_arrays_and_cpu_tensors() -> None:
    torch = pytest.importorskip("torch")
    first = sampler_for(np.zeros((1, 3), np.float32))
    assert isinstance(first, HostSampler)
    assert sampler_for(torch.zeros((1, 3))) is first


def test_other_devices_have_one_sampler_each(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from structgen.generation.sampling.torch_sampler import TorchSampler
    from structgen.generation.sampling.triton_sampler import TritonSampler

    monkeypatch.setattr(choose, "triton_runs_on", lambda device_type: device_type == "cuda")
    choose._device_sampler.cache_clear()
    kinds = {"mps": TorchSampler, "meta": TorchSampler, "cuda:0": TritonSampler, "cuda:1": TritonSampler}
    for device, kind in kinds.items():
        logits = SimpleNamespace(device=torch.device(device), dtype=torch.float32)
        assert type(sampler_for(logits)) is kind
        assert sampler_for(logits) is sampler_for(logits)
    choose._device_sampler.cache_clear()


def test_what_is_no_logits_is_named() -> None:
    with pytest.raises(BitmaskError, match="list"):
        sampler_for([[0.0]])


def test_import_loads_neither_torch_nor_triton() -> None:
    modules = "structgen.generation.sampling, structgen.core.engines.apply"
    program = f"import sys, {modules}; print('torch' in sys.modules, 'triton' in sys.modules)"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.split() == ["False", "False"]

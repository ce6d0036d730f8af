"""Facts survive JSON, and JSON that is none is refused by the name of the field."""

from __future__ import annotations

import json

import pytest

from envdoctor.facts import (
    ComputeCapability,
    CudaVersion,
    Distribution,
    Driver,
    DriverVersion,
    Environment,
    Facts,
    FactsFormatError,
    Gpu,
    Host,
    Observed,
    Setting,
    Symptom,
    Toolkit,
    Unknown,
    Verdict,
    Xid,
    from_json,
    to_json,
)

FULL = Facts(
    origin="probe",
    driver=Driver(
        version=Observed(DriverVersion.parse("580.159.04"), "NVML"),
        cuda=Observed(CudaVersion(13, 0), "NVML"),
        fabric_manager=Unknown("no permission"),
        xids=(Xid(79, "0000:06:00.0", "GPU has fallen off the bus"),),
    ),
    gpus=Observed((Gpu(0, "NVML", name="NVIDIA H200", compute_capability=ComputeCapability(9, 0)),), "NVML"),
    host=Host(
        os=Observed("linux", "uname"), wsl=Observed(False, "kernel"), shm_bytes=Observed(64 << 20, "statvfs")
    ),
    toolkits=Observed((Toolkit(CudaVersion(12, 8), "/usr/local/cuda", "nvcc", active=True),), "PATH"),
    environment=Environment(
        python=Observed("3.12.3", "pyvenv.cfg"),
        distributions={"torch": Distribution("torch", "metadata", "2.11.0", requires=("numpy",))},
        complete=True,
        builds={"torch": {"cuda": "13.0", "arch_list": ["sm_90"], "cxx11_abi": True}},
    ),
    variables={"CUDA_VISIBLE_DEVICES": "0"},
    settings=(Setting("batch", "4", "line 3", "per_device_train_batch_size", "transformers"),),
    symptoms=(Symptom("SYM-CUDA-OOM", "CUDA out of memory", "line 9", {"tried": "2.00 MiB"}),),
    verdicts=(Verdict("matmul.bf16", "passed", "smoke"),),
    notes=("dmesg could not be read",),
)


def test_facts_survive_json() -> None:
    assert from_json(json.loads(json.dumps(to_json(FULL)))) == FULL


def test_nothing_known_is_a_short_json() -> None:
    assert to_json(Facts()) == {"schema": "envdoctor.facts/1"}
    assert from_json({"schema": "envdoctor.facts/1"}) == Facts()


def test_unknown_keeps_its_reason() -> None:
    data = to_json(FULL)
    assert data["driver"]["fabric_manager"] == {"unknown": "no permission"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"schema": "other/1"}, "schema"),
        ({"gpus": {"value": [{"index": "0", "source": "x"}]}}, "facts.gpus.value[0].index"),
        ({"gpus": {"value": [{"source": "x"}]}}, "index missing"),
        ({"gpus": "many"}, "facts.gpus"),
        ({"driver": {"version": {"value": "banana", "source": ""}}}, "facts.driver.version.value"),
        ({"nonsense": 1}, "facts.nonsense"),
        ({"environment": {"distributions": []}}, "facts.environment.distributions"),
        ({"symptoms": {}}, "facts.symptoms"),
    ],
)
def test_what_is_no_facts_is_refused_by_name(change: dict[str, object], field: str) -> None:
    with pytest.raises(FactsFormatError, match=field.replace("[", r"\[").replace("]", r"\]")):
        from_json({"schema": "envdoctor.facts/1", **change})

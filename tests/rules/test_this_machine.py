"""What hides, limits or breaks on a machine that is otherwise in order is named, with what to type."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from declared import found

from envdoctor.facts import Distribution, Facts, Gpu, Observed, Unknown, from_json
from envdoctor.rules.variables import allocator_fault
from envdoctor.rules.visibility import parse_visible

MACHINES = Path(__file__).parent.parent / "machines"
GIB = 1 << 30


def recorded(name: str) -> Facts:
    return from_json(json.loads((MACHINES / f"{name}.json").read_text(encoding="utf-8")))


def named(facts: Facts) -> Facts:
    """Give the cards UUIDs, which recordings leave out."""
    told = facts.gpus.require()
    gpus = tuple(replace(gpu, uuid=f"GPU-00000000-0000-0000-0000-00000000000{gpu.index}") for gpu in told)
    return replace(facts, gpus=Observed(gpus, "NVML"))


ONE = named(recorded("healthy-h200-driver580-torch2.11"))
TWO = named(recorded("healthy-h200-x2-driver580-torch2.11"))


def with_variables(facts: Facts, **variables: str) -> Facts:
    return replace(facts, variables=MappingProxyType({**facts.variables, **variables}))


def with_gpus(facts: Facts, **state: object) -> Facts:
    gpus = tuple(replace(gpu, **state) for gpu in facts.gpus.require())
    return replace(facts, gpus=Observed(gpus, "NVML"))


def severity(facts: Facts, finding: str) -> str | None:
    told = found(facts).get(finding)
    return told.severity.value if told else None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("9", "error"),
        ("1", "error"),
        ("GPU-11111111-1111-1111-1111-111111111111", "error"),
        ("MIG-11111111-1111-1111-1111-111111111111", "error"),
        ("0,0", "error"),
        ("cuda:0", "error"),
        ("", "warning"),
        ("-1", "warning"),
        ("NoDevFiles", "warning"),
        ("0", None),
        ("GPU-00000000-0000", None),
        ("0,", None),
    ],
)
def test_every_card_hidden_from_one(value: str, expected: str | None) -> None:
    assert severity(with_variables(ONE, CUDA_VISIBLE_DEVICES=value), "GPU-HIDDEN") == expected


def test_placeholders_of_a_shared_report_are_not_taken_for_uuids() -> None:
    shared = with_gpus(ONE, uuid="<gpu-uuid-1>")
    for value in ("<gpu-uuid-1>", "GPU-11111111-1111-1111-1111-111111111111"):
        assert severity(with_variables(shared, CUDA_VISIBLE_DEVICES=value), "GPU-HIDDEN") is None


def test_hidden_cards_say_what_to_type() -> None:
    finding = found(with_variables(ONE, CUDA_VISIBLE_DEVICES="9"))["GPU-HIDDEN"]
    assert finding.summary == (
        "CUDA_VISIBLE_DEVICES=9 hides every GPU (1) from CUDA programs: "
        "no GPU here has the number 9 (here is 0 alone)."
    )
    commands = [remedy.commands for remedy in finding.remedies]
    assert commands == [("unset CUDA_VISIBLE_DEVICES",), ("export CUDA_VISIBLE_DEVICES=0",)]


@pytest.mark.parametrize(("value", "kept"), [("0,9", [0]), ("1,-1,0", [1]), ("1, x", [1]), ("1,0", [1, 0])])
def test_what_stands_before_the_first_mistake_stays(value: str, kept: list[int]) -> None:
    assert [gpu.index for gpu in parse_visible(value, TWO.gpus.require()).gpus] == kept
    hidden = severity(with_variables(TWO, CUDA_VISIBLE_DEVICES=value), "GPU-HIDDEN-PART")
    assert hidden == ("warning" if len(kept) < 2 else None)


def test_a_subset_that_was_meant_is_no_finding() -> None:
    assert not {i for i in found(with_variables(TWO, CUDA_VISIBLE_DEVICES="1")) if i.startswith("GPU-HIDDEN")}


def test_a_uuid_and_its_beginning_name_a_card() -> None:
    gpus = (Gpu(0, "NVML", uuid="GPU-aa11"), Gpu(1, "NVML", uuid="GPU-aa22"))
    assert [gpu.index for gpu in parse_visible("GPU-aa22,GPU-aa1", gpus).gpus] == [1, 0]
    assert parse_visible("GPU-aa", gpus).why == "no GPU here is GPU-aa"


@pytest.mark.parametrize("value", ["MIG-5c1b", "MIG-GPU-aa11/7/0", "GPU-aa11", "0"])
def test_instances_are_named_by_their_own_uuids_and_their_cards(value: str) -> None:
    gpu = Gpu(0, "NVML", uuid="GPU-aa11", mig="Enabled", mig_devices=("MIG 1g.18gb (UUID: MIG-5c1b-77)",))
    assert parse_visible(value, (gpu,)).gpus == (gpu,)


def test_what_a_report_says_of_its_gpus_is_not_taken_for_all_of_them() -> None:
    told = replace(with_variables(ONE, CUDA_VISIBLE_DEVICES="3"), origin="paste")
    assert severity(told, "GPU-HIDDEN") is None
    assert severity(with_variables(told, CUDA_VISIBLE_DEVICES="-1"), "GPU-HIDDEN") == "warning"


def test_numbers_mean_other_cards_where_they_differ() -> None:
    gpus = (Gpu(0, "NVML", name="Tesla T4"), Gpu(1, "NVML", name="NVIDIA H200"))
    mixed = with_variables(replace(ONE, gpus=Observed(gpus, "NVML")), CUDA_VISIBLE_DEVICES="1")
    assert severity(mixed, "GPU-ORDER") == "note"
    assert severity(with_variables(mixed, CUDA_DEVICE_ORDER="PCI_BUS_ID"), "GPU-ORDER") is None


def test_a_card_held_by_another_process() -> None:
    holder = {"pid": 4242, "used_bytes": 139 * GIB, "name": "python"}
    finding = found(with_gpus(ONE, memory_free_bytes=GIB // 2, processes=(holder,)))["GPU-FULL"]
    assert finding.severity.value == "error"
    assert "held by python (pid 4242)" in finding.summary
    assert finding.remedies[0].commands[0].startswith("nvidia-smi --query-compute-apps")


def test_a_card_of_which_hardly_anything_is_left_is_full() -> None:
    holder = {"pid": 4242, "used_bytes": 138 * GIB, "name": "python"}
    finding = found(with_gpus(ONE, memory_free_bytes=int(1.3 * GIB), processes=(holder,)))["GPU-FULL"]
    assert finding.severity.value == "error"
    assert not any("fuser" in command for remedy in finding.remedies for command in remedy.commands)
    unseen = found(with_gpus(ONE, memory_free_bytes=int(1.3 * GIB), processes=()))["GPU-FULL"]
    assert any("fuser" in command for remedy in unseen.remedies for command in remedy.commands)


def test_a_free_card_beside_a_full_one_is_offered() -> None:
    first, second = TWO.gpus.require()
    gpus = (replace(first, memory_free_bytes=GIB // 2), second)
    finding = found(replace(TWO, gpus=Observed(gpus, "NVML")))["GPU-FULL"]
    assert finding.severity.value == "warning"
    assert finding.remedies[0].commands == ("export CUDA_VISIBLE_DEVICES=1",)
    hidden = with_variables(replace(TWO, gpus=Observed(gpus, "NVML")), CUDA_VISIBLE_DEVICES="1")
    assert severity(hidden, "GPU-FULL") is None


@pytest.mark.parametrize(
    ("free_gib", "finding", "expected"),
    [(60, "GPU-BUSY", "warning"), (120, "GPU-IN-USE", "note"), (139, "GPU-IN-USE", None)],
)
def test_a_card_partly_held(free_gib: int, finding: str, expected: str | None) -> None:
    assert severity(with_gpus(ONE, memory_free_bytes=free_gib * GIB), finding) == expected


def test_a_report_of_a_busy_card_is_no_finding() -> None:
    busy = replace(with_gpus(ONE, memory_free_bytes=0), origin="paste")
    assert severity(busy, "GPU-FULL") is None


def test_an_exclusive_card_that_is_taken() -> None:
    holder = {"pid": 7, "used_bytes": GIB, "name": "vllm"}
    taken = with_gpus(ONE, compute_mode="Exclusive_Process", processes=(holder,))
    assert severity(taken, "GPU-EXCLUSIVE-TAKEN") == "error"
    alone = with_gpus(ONE, compute_mode="Exclusive_Process", processes=())
    assert severity(alone, "GPU-EXCLUSIVE-TAKEN") is None


def test_a_card_that_does_not_answer() -> None:
    lost = Gpu(0, "NVML", unknown=MappingProxyType({"name": "GPU is lost (NVML error 15)"}))
    assert severity(replace(ONE, gpus=Observed((lost,), "NVML")), "GPU-LOST") == "error"


def test_mig_without_an_instance() -> None:
    assert severity(with_gpus(ONE, mig="Enabled", mig_devices=()), "GPU-MIG-EMPTY") == "error"
    assert severity(with_gpus(ONE, mig="Enabled", mig_devices=("MIG 1g",)), "GPU-MIG-EMPTY") is None
    both = found(with_gpus(TWO, mig="Enabled", mig_devices=()))["GPU-MIG-EMPTY"]
    assert both.summary == "GPU 0, 1 is in MIG mode and has no instance: CUDA sees no device on them."
    assert both.remedies[1].commands == ("sudo nvidia-smi -i 0,1 -mig 0",)


def test_no_shared_memory() -> None:
    host = replace(ONE.host, shm_bytes=Observed(0, "/dev/shm, which is not there"))
    told = found(replace(ONE, host=host))
    assert told["SHM-MISSING"].severity.value == "warning"
    assert "SHM-SMALL-ONE-GPU" not in told


@pytest.mark.parametrize(
    ("value", "finding"),
    [
        ("8.0", "ARCH-LIST-LACKS-CARD"),
        ("8.6;8.9", "ARCH-LIST-LACKS-CARD"),
        ("10.0+PTX", "ARCH-LIST-LACKS-CARD"),
        ("sm_90", "ARCH-LIST-WRONG"),
        ("90", "ARCH-LIST-WRONG"),
        ("9.0,10.0", "ARCH-LIST-WRONG"),
        ("8.0+PTX", None),
        ("9.0", None),
        ("9.0a", None),
        ("7.5 8.0 9.0+PTX", None),
        ("Hopper", None),
        ("", None),
    ],
)
def test_arch_lists_against_the_card(value: str, finding: str | None) -> None:
    told = set(found(with_variables(ONE, TORCH_CUDA_ARCH_LIST=value)))
    assert {i for i in told if i.startswith("ARCH-LIST")} == ({finding} if finding else set())


@pytest.mark.parametrize(
    ("value", "version", "named"),
    [
        ("9.0a", "0.19.8", True),
        ("8.0;9.0a", "0.19.0", True),
        ("Hopper", "0.19.8", True),
        ("9.0+PTX", "0.19.8", False),
        ("9.0a", "0.18.9", False),
    ],
)
def test_deepspeeds_builder_reads_numbers_alone(value: str, version: str, named: bool) -> None:
    packages = {**ONE.environment.distributions, "deepspeed": Distribution("deepspeed", "x", version=version)}
    facts = replace(ONE, environment=replace(ONE.environment, distributions=packages))
    told = found(with_variables(facts, TORCH_CUDA_ARCH_LIST=value))
    assert ("DS-ARCH-LIST-SUFFIX" in told) == named


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        ("expandable_segments:True", False),
        ("expandable_segments:true", True),
        ("expandable_segments=True", True),
        ('"expandable_segments:True"', True),
        ("max_split_size_mb:512,garbage_collection_threshold:0.8", False),
        ("max_split_size_mb:20", True),
        ("garbage_collection_threshold:1.0", True),
        ("roundup_power2_divisions:[256:1,512:2,>:8],backend:native", False),
        ("backend:cudaMallocAsync", False),
        ("backend:jemalloc", True),
    ],
)
def test_what_torchs_allocator_refuses(value: str, refused: bool) -> None:
    assert (allocator_fault(value) is not None) == refused
    told = found(with_variables(ONE, PYTORCH_CUDA_ALLOC_CONF=value))
    assert ("ALLOC-CONF-WRONG" in told) == refused


def test_an_override_of_bitsandbytes_that_it_does_not_carry() -> None:
    builds = {**ONE.environment.builds, "bitsandbytes": {"binaries": ["cpu", "cuda126", "cuda130"]}}
    facts = replace(ONE, environment=replace(ONE.environment, builds=builds))
    assert severity(with_variables(facts, BNB_CUDA_VERSION="118"), "BNB-OVERRIDE") == "error"
    assert severity(with_variables(facts, BNB_CUDA_VERSION="126"), "BNB-OVERRIDE") is None


def test_packages_that_come_from_elsewhere() -> None:
    environment = replace(ONE.environment, kind=Observed("conda", "x"), prefix=Observed("/srv/env", "x"))
    old = Distribution("numpy", "x", version="1.0", location="/opt/old/lib/python3.12/site-packages")
    facts = replace(ONE, environment=replace(environment, distributions={"numpy": old}))
    told = found(with_variables(facts, PYTHONPATH="/opt/old/lib/python3.12/site-packages"))
    assert told["PYTHONPATH-SHADOWS"].remedies[0].commands == ("unset PYTHONPATH",)
    mine = replace(old, location="/home/u/.local/lib/python3.12/site-packages")
    facts = replace(ONE, environment=replace(environment, distributions={"numpy": mine}))
    assert found(facts)["USER-SITE-SHADOWS"].remedies[0].commands == ("export PYTHONNOUSERSITE=1",)


def test_a_path_to_another_pythons_packages() -> None:
    environment = replace(
        ONE.environment,
        kind=Observed("venv", "x"),
        prefix=Observed("/e", "x"),
        python=Observed("3.12.3", "x"),
    )
    facts = with_variables(
        replace(ONE, environment=environment), PYTHONPATH="/opt/lib/python3.10/site-packages"
    )
    assert severity(facts, "PYTHONPATH-OTHER-PYTHON") == "warning"


@pytest.mark.parametrize(
    ("name", "value", "finding"),
    [
        ("HF_HUB_OFFLINE", "1", "HF-OFFLINE-HUB"),
        ("TRANSFORMERS_OFFLINE", "1", "HF-OFFLINE-TRANSFORMERS"),
        ("HF_DATASETS_OFFLINE", "TRUE", "HF-OFFLINE-DATASETS"),
        ("CUDA_FORCE_PTX_JIT", "1", "CUDA-PTX-FORCED"),
        ("CUDA_CACHE_DISABLE", "1", "CUDA-CACHE-OFF"),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", "TORCH-NO-CACHING"),
        ("NVIDIA_TF32_OVERRIDE", "0", "TF32-OFF"),
        ("TORCHDYNAMO_DISABLE", "1", "TORCH-COMPILE-OFF"),
        ("NCCL_P2P_DISABLE", "1", "NCCL-P2P-OFF"),
        ("NCCL_SHM_DISABLE", "1", "NCCL-SHM-OFF"),
        ("NCCL_IB_DISABLE", "1", "NCCL-IB-OFF"),
        ("PYTHONHOME", "/opt/python", "PYTHONHOME-SET"),
        ("CUDA_LAUNCH_BLOCKING", "1", "SETTING-CUDA-LAUNCH-BLOCKING"),
        ("LD_LIBRARY_PATH", "/usr/local/cuda/lib64/stubs", "DRIVER-STUB-LIBRARY"),
    ],
)
def test_variables_that_limit(name: str, value: str, finding: str) -> None:
    assert finding not in found(TWO)
    assert finding in found(with_variables(TWO, **{name: value}))


ASTRAY = {
    "CUDA_HOME": "CUDA-HOME-ASTRAY",
    "LD_PRELOAD": "LD-PRELOAD-ASTRAY",
    "TMPDIR": "TMPDIR-ASTRAY",
    "HF_HOME": "HF-HOME-ASTRAY",
    "HF_HUB_CACHE": "HF-HUB-CACHE-ASTRAY",
    "XDG_CACHE_HOME": "XDG-CACHE-ASTRAY",
    "TORCH_EXTENSIONS_DIR": "TORCH-EXTENSIONS-ASTRAY",
    "TRITON_CACHE_DIR": "TRITON-CACHE-ASTRAY",
    "CC": "CC-ASTRAY",
    "CXX": "CXX-ASTRAY",
    "NCCL_SOCKET_IFNAME": "NCCL-IFNAME-ASTRAY",
    "GLOO_SOCKET_IFNAME": "GLOO-IFNAME-ASTRAY",
    "NCCL_IB_HCA": "NCCL-HCA-ASTRAY",
}


@pytest.mark.parametrize(("name", "finding"), ASTRAY.items())
def test_variables_that_lead_nowhere(name: str, finding: str) -> None:
    astray = replace(
        with_variables(ONE, **{name: "/nowhere"}), astray=MappingProxyType({name: "is not there"})
    )
    assert "/nowhere: is not there" in found(astray)[finding].summary
    assert not set(ASTRAY.values()) & set(found(ONE))


@pytest.mark.parametrize(
    ("error", "finding"),
    [
        ("Unknown Error (NVML error 999)", "NVML-UNKNOWN-ERROR"),
        ("Driver Not Loaded (NVML error 9)", "NVML-NOT-LOADED"),
    ],
)
def test_what_nvml_says_of_the_machine(error: str, finding: str) -> None:
    assert (
        severity(replace(ONE, driver=replace(ONE.driver, nvml=Observed(error, "NVML"))), finding) == "error"
    )


def test_fast_downloads_without_their_package() -> None:
    packages = {
        **ONE.environment.distributions,
        "huggingface-hub": Distribution("huggingface-hub", "x", version="0.36.0"),
    }
    facts = replace(ONE, environment=replace(ONE.environment, distributions=packages))
    assert severity(with_variables(facts, HF_HUB_ENABLE_HF_TRANSFER="1"), "HF-TRANSFER-MISSING") == "error"


@pytest.mark.parametrize(
    ("container", "finding", "command"),
    [
        ("none", "DRIVER-MISSING", "nvidia-driver"),
        ("docker", "GPU-NOT-HANDED", "--gpus all"),
        ("kubernetes", "GPU-NOT-HANDED", "nvidia.com/gpu"),
        ("singularity", "GPU-NOT-HANDED", "--nv"),
    ],
)
def test_a_card_that_only_the_kernel_knows(container: str, finding: str, command: str) -> None:
    gpu = Gpu(0, "/sys/bus/pci/devices", pci_id="10de:2335")
    driver = replace(
        ONE.driver, nvml=Unknown("libnvidia-ml.so.1 was not found: no NVIDIA driver is installed")
    )
    host = replace(ONE.host, container=Observed(container, "x"))
    facts = replace(ONE, gpus=Observed((gpu,), gpu.source), driver=driver, host=host)
    told = found(facts)[finding]
    assert told.severity.value == "error"
    assert command in told.remedies[0].commands[0]
    plain = replace(facts, environment=replace(ONE.environment, distributions={}, builds={}))
    assert severity(plain, finding) == "note"

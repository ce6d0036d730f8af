from __future__ import annotations

import time

import pytest
from fake_nvml import H200, MISMATCH, FakeNvml
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.facts import from_json
from envdoctor.probes import PROBES, gpus, nvidia_smi, read_machine

GPU_PROBES = tuple(probe for probe in PROBES if "gpus" in probe.facts)

PROC_VERSION = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (build@host)\n"
)
ROW_610 = (
    "0, NVIDIA B200, GPU-11111111-2222-3333-4444-555555555555, 183359, 182600, 00000000:1B:00.0, 610.43.02, "
    "10.0, 0x290110DE, 1650000000000, Disabled, Enabled, 0, Enabled, Default, 6, 6, 16, 16\n"
)
SMI_610 = f"""#!/bin/sh
case "$*" in
  *--query-gpu=*) printf '%s' '{ROW_610}' ;;
  *) echo '| NVIDIA-SMI 610.43.02    KMD Version: 610.43.02    CUDA UMD Version: 13.4 |' ;;
esac
"""


def read(machine):
    return read_machine(machine=machine, probes=GPU_PROBES)


def test_an_h200_as_nvml_tells_it(machine):
    answer = gpus.read(machine(FakeNvml([H200])))
    [gpu] = answer["gpus"]["value"]
    assert (gpu["name"], gpu["compute_capability"], gpu["pci_id"]) == ("NVIDIA H200", "9.0", "10de:2335")
    assert gpu["memory_total_bytes"] == 150754820096
    assert (gpu["mig"], gpu["ecc"], gpu["compute_mode"], gpu["persistence"]) == (
        "Disabled", "Enabled", "Default", True,
    )  # fmt: skip
    assert gpu["unknown"] == {"nvlinks_total": "Not Supported (NVML error 3)"}
    assert answer["driver"]["version"] == {"value": "580.159.04", "source": "NVML"}
    assert answer["driver"]["user_version"]["value"] == "580.159.04"
    assert answer["driver"]["cuda"]["value"] == "13.0"
    assert answer["driver"]["nvml"]["value"] == "ok"


def test_two_gpus_with_nvlink_processes_and_throttling(machine, write):
    write("/proc/4242/comm", "python\n")
    busy = {
        **H200,
        "NvLinkState": [1, 1, 0],
        "Processes": [(4242, 5 << 30)],
        "CurrentClocksThrottleReasons": 0x48,
    }
    first, second = gpus.read(machine(FakeNvml([H200, busy])))["gpus"]["value"]
    assert (first["index"], second["index"]) == (0, 1)
    assert (second["nvlinks_up"], second["nvlinks_total"]) == (2, 3)
    assert second["processes"] == [{"pid": 4242, "used_bytes": 5 << 30, "name": "python"}]
    assert second["throttle_reasons"] == ["hw_slowdown", "hw_thermal_slowdown"]


def test_mig_devices_are_listed_by_profile_and_uuid(machine):
    part = {"Name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "UUID": "MIG-aaaa"}
    [gpu] = gpus.read(machine(FakeNvml([{**H200, "MigMode": [1, 1], "mig": [part]}])))["gpus"]["value"]
    assert gpu["mig"] == "Enabled"
    assert gpu["mig_devices"] == ["MIG 1g.5gb (UUID: MIG-aaaa)"]


def test_a_gpu_that_fell_off_the_bus_is_still_listed(machine):
    first, second = gpus.read(machine(FakeNvml([H200, {"lost": 15}])))["gpus"]["value"]
    assert first["name"] == "NVIDIA H200"
    assert second == {"index": 1, "source": "NVML", "unknown": {"name": "GPU is lost (NVML error 15)"}}


@pytest.mark.parametrize(("state", "expected"), [(1, "stopped"), (3, "running")])
def test_the_fabric_state_tells_of_the_fabric_manager(machine, state, expected):
    answer = gpus.read(machine(FakeNvml([{**H200, "GpuFabricInfo": {"state": state}}])))
    assert answer["driver"]["fabric_manager"]["value"] == expected


def test_a_library_that_does_not_match_the_module_is_named_and_sysfs_lists_the_card(machine, write):
    folder = "/sys/bus/pci/devices/0000:00:06.0/"
    for name, text in (("vendor", "0x10de\n"), ("device", "0x2335\n"), ("class", "0x030200\n")):
        write(folder + name, text)
    write(
        "/proc/driver/nvidia/gpus/0000:00:06.0/information", "Model: \t\t NVIDIA H200\nGPU UUID: \t ???????\n"
    )
    answer = read(machine(FakeNvml([H200], errors={"nvmlInit_v2": MISMATCH})))
    assert answer["driver"]["nvml"]["value"] == "Driver/library version mismatch (NVML error 18)"
    [gpu] = answer["gpus"]["value"]
    assert gpu["name"] == "NVIDIA H200"
    assert (gpu["pci_id"], gpu["source"]) == ("10de:2335", "/sys/bus/pci/devices")


def test_no_card_and_no_driver_is_no_gpu_rather_than_unknown(machine, write):
    write("/sys/bus/pci/devices/0000:00:01.0/vendor", "0x8086\n")
    answer = read(machine())
    assert answer["gpus"] == {"value": [], "source": "/sys/bus/pci/devices"}
    assert "libnvidia-ml.so.1 was not found" in answer["driver"]["nvml"]["unknown"]


def test_wsl_without_its_libraries_is_unknown(machine, write):
    write("/sys/bus/pci/devices/0000:00:01.0/vendor", "0x1414\n")
    write("/dev/dxg")
    assert "nvidia-smi was not found" in read(machine())["gpus"]["unknown"]


def test_a_jetsons_gpu_is_on_no_bus(machine, write):
    write("/proc/device-tree/compatible", "nvidia,p3737-0000+p3701-0005\0nvidia,tegra234\0")
    write("/proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0")
    assert [gpu["name"] for gpu in read(machine())["gpus"]["value"]] == [
        "NVIDIA Jetson AGX Orin Developer Kit"
    ]


def test_where_nvml_hangs_the_kernel_still_lists_the_card(machine, write):
    for name, text in (("vendor", "0x10de\n"), ("device", "0x2335\n"), ("class", "0x030200\n")):
        write("/sys/bus/pci/devices/0000:00:06.0/" + name, text)
    hanging = machine(lambda name: time.sleep(30))
    probes = tuple(probe._replace(limit_s=0.2) for probe in GPU_PROBES)
    answer = read_machine(machine=hanging, probes=probes)
    assert [gpu["pci_id"] for gpu in answer["gpus"]["value"]] == ["10de:2335"]
    assert answer["driver"]["nvml"]["unknown"].endswith("no answer within 0.2 s")


def test_driver_610_is_read_by_query_though_its_banner_changed(machine, write, tmp_path):
    write("/usr/bin/nvidia-smi", SMI_610, 0o755)
    answer = gpus.read(machine(PATH="/usr/bin"))
    assert answer["driver"]["version"] == {"value": "610.43.02", "source": "nvidia-smi --query-gpu"}
    [gpu] = answer["gpus"]["value"]
    assert (gpu["name"], gpu["compute_capability"], gpu["pci_id"]) == ("NVIDIA B200", "10.0", "10de:2901")
    assert gpu["memory_total_bytes"] == 183359 << 20


def test_an_old_nvidia_smi_is_asked_again_without_the_fields_it_lacks(machine, write):
    refusing = """#!/bin/sh
case "$*" in
  *compute_cap*) echo 'Field "compute_cap" is not a valid field to query.'; exit 2 ;;
  *) echo '0, Tesla T4, GPU-1, 15109, 15000, 00000000:00:1E.0, 418.87.00' ;;
esac
"""
    write("/usr/bin/nvidia-smi", refusing, 0o755)
    [gpu] = gpus.read(machine())["gpus"]["value"]
    assert (gpu["name"], gpu["memory_total_bytes"]) == ("Tesla T4", 15109 << 20)
    assert "compute_capability" not in gpu


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("#!/bin/sh\nsleep 60 & sleep 60\n", "gave no answer within 0.2 s"),
        ("#!/bin/sh\necho '%%% \\033[2J garbage, 1, 2'\n", "ended with 0 and said"),
        (
            "#!/bin/sh\necho 'NVIDIA-SMI has failed because it could not communicate'; exit 9\n",
            "ended with 9",
        ),
        ("#!/bin/sh\nyes | head -c 3000000\n", "wrote more than 1048576 bytes"),
        ("not a program", "cannot be run"),
    ],
)
def test_an_nvidia_smi_that_hangs_or_babbles_gives_a_reason(machine, write, monkeypatch, script, reason):
    monkeypatch.setattr(nvidia_smi, "LIMIT_S", 0.2 if "sleep" in script else 5.0)
    write("/usr/bin/nvidia-smi", script, 0o755)
    write("/dev/nvidiactl")
    assert reason in read(machine(PATH="/usr/bin:/bin"))["gpus"]["unknown"]


@settings(deadline=None)
@given(st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=12), min_size=17, max_size=17))
def test_whatever_nvidia_smi_prints_stays_facts_of_ours(cells):
    try:
        listed, driver = nvidia_smi.parse_gpus(", ".join(["0", *cells]), nvidia_smi.FIELDS)
    except nvidia_smi.SmiFailed:
        return
    version = {"value": driver, "source": ""} if driver else {"unknown": ""}
    schema = {"schema": "envdoctor.facts/1", "driver": {"version": version}}
    assert from_json({**schema, "gpus": {"value": listed, "source": ""}}).gpus.require()[0].index == 0


def test_a_value_that_a_card_does_not_have_is_left_out():
    row = ROW_610.replace("1650000000000", "[N/A]").replace("Disabled, Enabled, 0", "[N/A], [N/A], [N/A]")
    [gpu], driver = nvidia_smi.parse_gpus(row, nvidia_smi.FIELDS)
    assert driver == "610.43.02"
    assert not {"serial", "mig", "ecc", "ecc_uncorrected"} & set(gpu)

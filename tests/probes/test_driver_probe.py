from __future__ import annotations

import os
import struct

import pytest

from envdoctor.probes import driver, xids
from envdoctor.probes.library_paths import parse_cache

OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (build@host)\n"
    "GCC version:  gcc version 15.3.0 (GCC)\n"
)
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 17 22:55:48 UTC 2024\n"


def test_the_open_module_of_the_recorded_h200(machine, write):
    write("/proc/driver/nvidia/version", OPEN)
    told = driver.read(machine())["driver"]
    assert told["version"] == {"value": "580.159.04", "source": "/proc/driver/nvidia/version"}
    assert told["module"]["value"] == "open"


def test_the_closed_module(machine, write):
    write("/proc/driver/nvidia/version", CLOSED)
    told = driver.read(machine())["driver"]
    assert (told["version"]["value"], told["module"]["value"]) == ("535.161.08", "proprietary")


def test_sysfs_tells_the_version_where_proc_is_hidden(machine, write):
    write("/sys/module/nvidia/version", "610.43.02\n")
    assert driver.read(machine())["driver"]["version"] == {
        "value": "610.43.02",
        "source": "/sys/module/nvidia/version",
    }


def test_the_user_version_is_in_the_name_of_the_libcuda_that_would_be_loaded(machine, write, tmp_path):
    write("/usr/local/nvidia/lib64/libcuda.so.580.95.05")
    os.symlink("libcuda.so.580.95.05", tmp_path / "usr/local/nvidia/lib64/libcuda.so.1")
    write("/usr/lib/x86_64-linux-gnu/libcuda.so.535.161.08")
    os.symlink("libcuda.so.535.161.08", tmp_path / "usr/lib/x86_64-linux-gnu/libcuda.so.1")
    plain = driver.read(machine())["driver"]["user_version"]
    assert plain == {"value": "535.161.08", "source": "/usr/lib/x86_64-linux-gnu/libcuda.so.1"}
    led = driver.read(machine(LD_LIBRARY_PATH="/usr/local/nvidia/lib64"))["driver"]["user_version"]
    assert led["value"] == "580.95.05"


def test_a_machine_without_a_driver_says_why_it_knows_nothing(machine):
    told = driver.read(machine())["driver"]
    assert told["version"] == {"unknown": "no NVIDIA kernel module is loaded"}
    assert "libcuda.so.1 was not found" in told["user_version"]["unknown"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"/run/nvidia-fabricmanager/nv-fabricmanager.pid": "77", "/proc/77/comm": "nv-fabricmanage\n"},
            "running",
        ),
        ({"/usr/bin/nv-fabricmanager": ""}, "stopped"),
        ({}, "absent"),
    ],
)
def test_the_fabric_manager_matters_where_there_is_an_nvswitch(machine, write, files, expected):
    write("/proc/driver/nvidia-nvswitch/devices/0000:c5:00.0/information")
    for path, text in files.items():
        write(path, text)
    assert driver.read(machine())["driver"]["fabric_manager"]["value"] == expected


def test_the_fabric_manager_is_not_missed_without_a_switch_or_in_a_container(machine, write):
    write("/proc/driver/nvidia-nvswitch/permissions")
    told = driver.read(machine())["driver"]["fabric_manager"]
    assert told == {"unknown": "no NVSwitch is seen here that would need one"}
    write("/proc/driver/nvidia-nvswitch/devices/0000:c5:00.0/information")
    write("/.dockerenv")
    told = driver.read(machine())["driver"]["fabric_manager"]
    assert told == {"unknown": "a container does not see what its host runs"}


def test_the_newest_xid_of_each_number_and_gpu_is_kept():
    lines = [
        "6,1,1,-;NVRM: Xid (PCI:0000:01:00): 31, pid=1, first",
        "6,2,2,-;usb 1-1: new device",
        "6,3,3,-;NVRM: Xid (PCI:0000:01:00): 79, pid=9, GPU has fallen off the bus.",
        "6,4,4,-;NVRM: Xid (PCI:0000:01:00): 31, pid=2, second",
    ]
    found = xids.parse_xids(lines)
    assert [(one["number"], one["pci_bus"]) for one in found] == [(79, "0000:01:00"), (31, "0000:01:00")]
    assert found[1]["text"].endswith("second")


def test_xids_come_from_a_log_file_where_the_kernels_buffer_is_closed(machine, write):
    write("/sys/module/nvidia/version", "580.95.05\n")
    write("/var/log/kern.log", "kernel: NVRM: Xid (PCI:0000:3b:00): 48, DBE\n" * 3)
    assert [one["number"] for one in xids.read(machine())["driver"]["xids"]] == [48]


def test_a_closed_log_is_noted(machine, write):
    write("/sys/module/nvidia/version", "580.95.05\n")
    assert xids.read(machine())["notes"] == ["Xid lines were not read: /dev/kmsg: No such file or directory"]


def test_ldconfigs_cache_is_read_without_32_bit_copies():
    strings = [b"libcuda.so.1", b"/lib/libcuda.so.1", b"/lib32/libcuda.so.1"]
    start = 48 + 2 * 24
    places, blob = [], b""
    for text in strings:
        places.append(start + len(blob))
        blob += text + b"\0"
    header = b"glibc-ld.so.cache1.1" + struct.pack("<IIIIIII", 2, len(blob), 0, 0, 0, 0, 0)
    entries = [
        struct.pack("<iIIIQ", flags, places[0], places[at], 0, 0) for flags, at in ((0x303, 1), (3, 2))
    ]
    assert parse_cache(header + b"".join(entries) + blob) == [("libcuda.so.1", "/lib/libcuda.so.1")]


@pytest.mark.parametrize("data", [b"", b"glibc-ld.so.cache1.1", b"glibc-ld.so.cache1.1" + b"\xff" * 60])
def test_a_broken_cache_is_empty(data):
    assert parse_cache(data) == [] or all(isinstance(path, str) for _, path in parse_cache(data))

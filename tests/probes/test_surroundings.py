"""What decides beside other machines: RDMA ports, shared mounts, limits, clock, DIMMs, modules."""

from __future__ import annotations

import pytest
from fake_nvml import H200, FakeNvml

from envdoctor.probes import conditions, fabric, gpus, mounts

PORT = "/sys/class/infiniband/mlx5_0/ports/1/"


def test_a_port_is_told_without_its_own_address(machine, write):
    write(PORT + "state", "4: ACTIVE\n")
    write(PORT + "phys_state", "5: LinkUp\n")
    write(PORT + "rate", "400 Gb/sec (4X NDR)\n")
    write(PORT + "link_layer", "InfiniBand\n")
    write(PORT + "gids/0", "fe80:0000:0000:0000:506b:4b03:00fb:1234\n")
    write(PORT + "gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n")
    write("/sys/class/infiniband/mlx5_0/fw_ver", "28.39.3004\n")
    assert fabric.read(machine())["ports"]["value"] == [
        {
            **{"device": "mlx5_0", "port": 1, "link": "InfiniBand", "state": "ACTIVE"},
            **{"physical_state": "LinkUp", "rate_gbps": 400.0, "firmware": "28.39.3004"},
            **{"gids": 1, "subnet": "fe80:0000:0000:0000"},
        }
    ]


def test_no_adapter_is_an_answer_and_no_sys_is_none(machine, write):
    assert "unknown" in fabric.read(machine())["ports"]
    write("/sys/class/net/lo")
    assert fabric.read(machine())["ports"]["value"] == []


@pytest.mark.parametrize(
    ("text", "rate"), [("400 Gb/sec (4X NDR)", 400.0), ("2.5 Gb/sec (1X SDR)", 2.5), ("", None)]
)
def test_rates(text, rate):
    assert fabric.parse_rate(text) == rate


MOUNTS = r"""
36 35 98:0 / /scratch rw,noatime shared:1 - lustre 10.0.0.1@o2ib:/lustre rw,flock
37 35 0:40 / /home ro,nosuid - nfs4 filer:/export/home rw,vers=4.2
38 35 0:41 / /my\040data rw - fuse.juicefs JuiceFS:data rw
39 35 8:1 / / rw - ext4 /dev/sda1 rw
40 35 0:42 / /proc rw - proc proc rw
"""


def test_shared_mounts_and_no_others():
    assert mounts.parse_mounts(MOUNTS) == {
        "/scratch": {"kind": "lustre", "server": "10.0.0.1@o2ib:/lustre", "writable": True},
        "/home": {"kind": "nfs4", "server": "filer:/export/home", "writable": False},
        "/my data": {"kind": "fuse.juicefs", "server": "JuiceFS:data", "writable": True},
    }


def test_a_mount_that_is_there_tells_its_room(machine, write, tmp_path):
    write("/proc/self/mountinfo", MOUNTS)
    write("/scratch/x")
    told = mounts.read(machine())["host"]["mounts"]
    assert told["/scratch"]["free_bytes"] > 0
    assert "free_bytes" not in told["/home"]


def test_a_mount_that_hangs_is_named_as_unread(machine, write, monkeypatch):
    import threading

    held = threading.Event()

    def refused_late(path: str) -> None:
        held.wait()
        raise OSError("Stale file handle")

    write("/proc/self/mountinfo", MOUNTS)
    monkeypatch.setattr(mounts, "WAIT_S", 0.01)
    monkeypatch.setattr(mounts.os, "statvfs", refused_late)
    told = mounts.read(machine())
    held.set()
    assert told["unread"]["mounts"].startswith("/scratch, /home, /my data gave no answer")


def test_modules_dimms_and_numa(machine, write):
    write("/sys/module/nvidia_peermem/refcnt")
    write("/sys/devices/system/edac/mc/mc0/dimm0/size", "65536\n")
    write("/sys/devices/system/edac/mc/mc0/dimm1/size", "0\n")
    write("/sys/devices/system/node/node0/cpulist")
    write("/sys/class/dmi/id/product_name", "DGXH100\n")
    host = conditions.read(machine(LC_ALL="", LANG="de_DE.UTF-8"))["host"]
    assert host["modules"]["value"] == ["nvidia_peermem"]
    assert (host["memory_modules"]["value"], host["numa_nodes"]["value"]) == (1, 1)
    assert (host["product"]["value"], host["locale"]["value"]) == ("DGXH100", "de_DE.UTF-8")
    assert host["limits"]["nofile"] != 0


def test_a_gpus_power_heat_clocks_and_vbios(machine):
    gpu = gpus.read(machine(load_library=FakeNvml([H200])))["gpus"]["value"][0]
    assert (gpu["power_limit_mw"], gpu["power_limit_default_mw"]) == (700_000, 700_000)
    assert (gpu["temperature_c"], gpu["temperature_slowdown_c"]) == (31, 92)
    assert (gpu["sm_clock_mhz"], gpu["sm_clock_max_mhz"]) == (345, 1980)
    assert (gpu["memory_clock_mhz"], gpu["memory_clock_max_mhz"]) == (2619, 3201)
    assert gpu["vbios"] == "96.00.A0.00.01"

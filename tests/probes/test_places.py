from __future__ import annotations

import os

import pytest

from envdoctor.probes import places


@pytest.fixture
def net(write):
    """A machine with two interfaces and one InfiniBand adapter."""
    for name in ("eth0", "lo"):
        write(f"/sys/class/net/{name}/mtu")
    write("/sys/class/infiniband/mlx5_0/node_type")


@pytest.mark.parametrize(
    ("name", "value", "astray"),
    [
        ("NCCL_SOCKET_IFNAME", "eth", False),
        ("NCCL_SOCKET_IFNAME", "=eth0", False),
        ("NCCL_SOCKET_IFNAME", "ib,eth", False),
        ("NCCL_SOCKET_IFNAME", "^lo", False),
        ("NCCL_SOCKET_IFNAME", "^=docker0", False),
        ("NCCL_SOCKET_IFNAME", "=eth", True),
        ("NCCL_SOCKET_IFNAME", "ens5", True),
        ("NCCL_SOCKET_IFNAME", "^lo,eth", True),
        ("GLOO_SOCKET_IFNAME", "eth0", False),
        ("GLOO_SOCKET_IFNAME", "eth", True),
        ("NCCL_IB_HCA", "mlx5", False),
        ("NCCL_IB_HCA", "=mlx5_0:1", False),
        ("NCCL_IB_HCA", "^mlx5_9", False),
        ("NCCL_IB_HCA", "rocep", True),
    ],
)
def test_interfaces_and_adapters_by_name(machine, net, name, value, astray):
    told = places.read(machine(**{name: value})).get("astray", {})
    assert (name in told) == astray


def test_without_a_list_of_interfaces_nothing_is_astray(machine):
    assert places.read(machine(NCCL_SOCKET_IFNAME="ens5")) == {}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("CUDA_HOME", "/cuda", None),
        ("CUDA_HOME", "/nowhere", "/nowhere is no folder"),
        ("CUDA_HOME", "/empty", "/empty holds no bin/nvcc"),
        ("LD_PRELOAD", "/lib/a.so libtcmalloc.so.4", None),
        ("LD_PRELOAD", "/lib/a.so:/lib/b.so", "not there: /lib/b.so"),
        ("CC", "/cuda/bin/nvcc -m64", None),
        ("CC", "gcc", "no program gcc"),
        ("HF_HOME", "/empty/not/yet/there", None),
        ("HF_HOME", "/lib/a.so", "/lib/a.so is no folder"),
        ("TMPDIR", "/empty", None),
        ("TMPDIR", "/empty/gone", "/empty/gone is not there"),
        ("TMPDIR", "", None),
    ],
)
def test_folders_files_and_compilers(machine, write, name, value, why):
    write("/cuda/bin/nvcc", "", 0o755)
    write("/lib/a.so")
    write("/empty/x")
    told = places.read(machine(**{name: value, "PATH": "/usr/bin"})).get("astray", {})
    assert told.get(name) == why


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_is_closed_to_us(machine, write):
    write("/closed/x").parent.chmod(0o555)
    assert "closed to us" in places.read(machine(HF_HOME="/closed/hub"))["astray"]["HF_HOME"]

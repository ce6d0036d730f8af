from __future__ import annotations

import pytest
from elf_files import make_elf
from environments import install, make_venv

from envdoctor.probes import libraries
from envdoctor.probes.elf import read_dynamic
from envdoctor.probes.machine import Machine


@pytest.fixture
def torch_site(tmp_path):
    """A torch of CUDA 12 beside its NVIDIA wheels; torch itself needs cudart and cudnn."""
    site = make_venv(tmp_path / "venv")
    (site / "torch/lib").mkdir(parents=True)
    rpath = "$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN"
    elf = make_elf(["libcudart.so.12", "libcudnn.so.9"], rpath=rpath)
    (site / "torch/lib/libtorch_global_deps.so").write_bytes(elf)
    install(site, "nvidia-cudnn-cu12", "9.1.0.70", files=["nvidia/cudnn/lib/libcudnn.so.9"])
    install(site, "nvidia-nvjitlink-cu12", "12.4.127", files=["nvidia/nvjitlink/lib/libnvJitLink.so.12"])
    return site


def read(tmp_path, **environ):
    machine = Machine(python=str(tmp_path / "venv"), root=str(tmp_path), environ=environ)
    return libraries.read(machine).get("libraries", [])


def winners(found):
    return {one["name"]: one["origin"] for one in found if one.get("wins")}


def test_wheels_carry_their_versions_and_win_where_nothing_else_is(tmp_path, torch_site):
    found = read(tmp_path)
    assert {(one["name"], one["version"], one["cuda_major"]) for one in found} == {
        ("cudnn", "9.1.0.70", 12),
        ("nvJitLink", "12.4.127", 12),
    }
    assert winners(found) == {"cudnn": "wheel", "nvJitLink": "wheel"}


def test_ld_library_path_hides_what_torch_does_not_reach_by_its_own_rpath(tmp_path, torch_site, write):
    write("/opt/old/libnvJitLink.so.12")
    write("/opt/old/libcudnn.so.9")
    found = read(tmp_path, LD_LIBRARY_PATH="/opt/old")
    assert winners(found) == {"cudnn": "wheel", "nvJitLink": "LD_LIBRARY_PATH"}


def test_without_an_rpath_ld_library_path_wins(tmp_path, torch_site, write):
    elf = make_elf(["libcudnn.so.9"], runpath="$ORIGIN")
    (torch_site / "torch/lib/libtorch_global_deps.so").write_bytes(elf)
    write("/opt/old/libcudnn.so.9")
    assert winners(read(tmp_path, LD_LIBRARY_PATH="/opt/old"))["cudnn"] == "LD_LIBRARY_PATH"


def test_another_generation_on_the_system_is_not_what_torch_loads(tmp_path, torch_site, write):
    write("/usr/lib/x86_64-linux-gnu/libcudnn.so.8")
    found = read(tmp_path)
    assert [(one["origin"], one.get("wins")) for one in found if one["name"] == "cudnn"] == [
        ("ldconfig", None),
        ("wheel", True),
    ]


def test_a_toolkits_copy_is_listed_but_out_of_the_loaders_reach(tmp_path, torch_site, write):
    write("/usr/local/cuda/lib64/libcudart.so.11.0")
    [cudart] = [one for one in read(tmp_path) if one["name"] == "cudart"]
    assert cudart["cuda_major"] == 11
    assert (cudart["origin"], "wins" in cudart) == ("toolkit", False)


def test_compat_libraries_of_a_newer_driver_are_seen(tmp_path, torch_site, write):
    write("/usr/local/cuda/compat/libcuda.so.575.57.08")
    (tmp_path / "usr/local/cuda/compat/libcuda.so.1").symlink_to("libcuda.so.575.57.08")
    [cuda] = [one for one in read(tmp_path, LD_LIBRARY_PATH="/usr/local/cuda/compat") if one.get("wins")][:1]
    assert (cuda["name"], cuda["version"], cuda["origin"]) == ("cuda", "575.57.08", "LD_LIBRARY_PATH")


def test_two_wheels_of_one_library_leave_its_version_open(tmp_path, torch_site):
    install(torch_site, "nvidia-cudnn-cu11", "8.9.6.50")
    [cudnn] = [one for one in read(tmp_path) if one["name"] == "cudnn"]
    assert "version" not in cudnn


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"#!/bin/sh\n", make_elf(["libc.so.6"])[:150]])
def test_what_is_no_elf_file_has_no_dynamic_section(tmp_path, data):
    (tmp_path / "file").write_bytes(data)
    assert read_dynamic(str(tmp_path / "file")) is None or data

from __future__ import annotations

import pytest

from envdoctor.probes import disk, host
from envdoctor.probes.cgroup import read_limit


def test_a_plain_machine(machine, write):
    write("/etc/os-release", 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n')
    write("/proc/version", "Linux version 6.8.0-generic\n")
    write("/proc/1/cgroup", "0::/init.scope\n")
    write("/proc/meminfo", "MemTotal:       131072 kB\nMemAvailable:   65536 kB\n")
    write("/dev/shm/x")
    told = host.read(machine())["host"]
    assert told["distro"] == {"value": "Ubuntu 24.04.3 LTS", "source": "/etc/os-release"}
    assert (told["wsl"]["value"], told["container"]["value"]) == (False, "none")
    assert told["memory_total_bytes"]["value"] == 131072 << 10
    assert told["memory_available_bytes"]["value"] == 65536 << 10
    assert told["shm_bytes"]["value"] > 0


def test_free_room_is_told_of_the_places_that_variables_name(machine, tmp_path):
    free = disk.read(machine(HF_HOME="/models/hf", TORCH_HOME="/models/torch"))["host"]["disk_free_bytes"]
    assert set(free) == {"hf_cache", "torch_cache", "tmp", "prefix"}
    assert free["hf_cache"] > 0
    assert disk.cache_places(machine(HF_HOME="/models/hf"))["hf_cache"] == "/models/hf/hub"


def test_what_is_closed_to_us_is_unknown_with_a_reason(machine):
    told = host.read(machine())["host"]
    assert told["distro"] == {"unknown": "no os-release file"}
    assert told["wsl"] == {"unknown": "/proc/version is closed to us"}
    assert told["shm_bytes"] == {"value": 0, "source": "/dev/shm, which is not there"}


def test_wsl(machine, write):
    write("/proc/version", "Linux version 5.15.167.4-microsoft-standard-WSL2\n")
    assert host.read(machine())["host"]["wsl"]["value"] is True


@pytest.mark.parametrize(
    ("files", "environ", "expected"),
    [
        (["/.dockerenv"], {}, "docker"),
        (["/run/.containerenv"], {}, "podman"),
        (["/.dockerenv"], {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ([], {"APPTAINER_CONTAINER": "/images/torch.sif"}, "singularity"),
    ],
)
def test_containers(machine, write, files, environ, expected):
    for path in files:
        write(path)
    assert host.read(machine(**environ))["host"]["container"]["value"] == expected


def test_the_lowest_limit_of_nested_groups_holds(machine, write):
    write("/proc/self/cgroup", "0::/user.slice/job_7/step_0\n")
    write("/sys/fs/cgroup/user.slice/job_7/step_0/memory.max", "max\n")
    write("/sys/fs/cgroup/user.slice/job_7/memory.max", "8589934592\n")
    write("/sys/fs/cgroup/user.slice/memory.max", "17179869184\n")
    assert read_limit(machine()) == {"value": 8 << 30, "source": "/sys/fs/cgroup/user.slice/job_7/memory.max"}


def test_the_first_version_of_control_groups(machine, write):
    write("/proc/self/cgroup", "9:cpu,cpuacct:/x\n5:memory:/docker/abc\n")
    write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n")
    assert read_limit(machine())["value"] == 4 << 30


def test_no_limit_is_said(machine, write):
    write("/proc/self/cgroup", "5:memory:/\n")
    write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert read_limit(machine()) == {"unknown": "no control group limits memory here"}

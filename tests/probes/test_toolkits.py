from __future__ import annotations

import os

from envdoctor.probes import toolkits


def a_toolkit(write, path, version):
    write(path + "/bin/nvcc", "\x7fELF", 0o755)
    write(path + "/version.json", f'{{"cuda" : {{"name" : "CUDA SDK", "version" : "{version}"}}}}')


def test_several_toolkits_and_the_one_that_extensions_are_built_with(machine, write, tmp_path):
    a_toolkit(write, "/usr/local/cuda-12.4", "12.4.1")
    a_toolkit(write, "/usr/local/cuda-13.0", "13.0.2")
    os.symlink("cuda-13.0", tmp_path / "usr/local/cuda")
    told = toolkits.read(machine(PATH="/usr/local/cuda/bin", CUDA_HOME="/usr/local/cuda-12.4"))
    assert told["toolkits"]["value"] == [
        {"version": "12.4", "path": "/usr/local/cuda-12.4", "source": "CUDA_HOME", "active": True},
        {"version": "13.0", "path": "/usr/local/cuda-13.0", "source": "nvcc on PATH"},
    ]


def test_an_nvcc_behind_a_wrapper_belongs_to_its_toolkit(machine, write):
    a_toolkit(write, "/opt/nvidia/cuda-12.8", "12.8.0")
    write("/usr/local/bin/nvcc", '#!/bin/sh\nexec /opt/nvidia/cuda-12.8/bin/nvcc "$@"\n', 0o755)
    [found] = toolkits.read(machine(PATH="/usr/local/bin"))["toolkits"]["value"]
    assert (found["version"], found["path"]) == ("12.8", "/opt/nvidia/cuda-12.8")


def test_older_toolkits_tell_their_version_otherwise(machine, write):
    write("/usr/local/cuda-10.2/bin/nvcc", "", 0o755)
    write("/usr/local/cuda-10.2/version.txt", "CUDA Version 10.2.89\n")
    write("/usr/local/cuda-11.8/bin/nvcc", "", 0o755)
    write("/usr/local/cuda-11.8/include/cuda.h", "#define CUDA_VERSION 11080\n")
    write(
        "/usr/local/cuda-9.2/bin/nvcc",
        "#!/bin/sh\necho Cuda compilation tools, release 9.2, V9.2.148\n",
        0o755,
    )
    found = toolkits.read(machine())["toolkits"]["value"]
    assert [one["version"] for one in found] == ["10.2", "11.8", "9.2"]


def test_libraries_without_a_compiler_are_no_toolkit_and_a_wrong_cuda_home_is_noted(machine, write):
    write("/usr/local/cuda-12.1/lib64/libcudart.so.12")
    told = toolkits.read(machine(CUDA_HOME="/usr/local/cuda-12.1"))
    assert told["toolkits"]["value"] == []
    assert told["notes"] == ["CUDA_HOME=/usr/local/cuda-12.1 holds no bin/nvcc"]

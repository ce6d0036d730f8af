"""Commands are those of the machine that the report tells of."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

MATRIX = load_matrix()
GCC = "host_config.h:132:2: error: unsupported GNU version! gcc versions later than 11 are not supported!"
HEADERS = "main.c:5:10: fatal error: Python.h: No such file or directory"
OLD_DRIVER = "torch: 2.5.1\nThe NVIDIA driver on your system is too old (found version 11040)."
XFORMERS = "xFormers was built for: PyTorch 2.6.0+cu124 with CUDA 1204 (you have 2.6.0+cu126)"


def commands(paste: str) -> str:
    findings = diagnose_facts(parse_paste(paste, "", MATRIX.lexicon), MATRIX, complete=False).findings
    return "\n".join(c for f in findings for r in f.remedies for c in r.commands)


@pytest.mark.parametrize(
    ("paste", "typed"),
    [
        (f"OS: Ubuntu 22.04\n{GCC}", "sudo apt-get install gcc-11 g++-11"),
        (f"OS: Fedora 37\n{GCC}", "sudo dnf install gcc-toolset-11"),
        (f"OS: Rocky Linux 9\n{HEADERS}", "sudo dnf install python3-devel"),
        (f"OS: Arch Linux\n{HEADERS}", "sudo pacman -S python"),
        (f"OS: Ubuntu 22.04\n{OLD_DRIVER}", "sudo apt-get install nvidia-driver-580"),
        (f"OS: CentOS Linux 8\n{OLD_DRIVER}", "sudo dnf install cuda-drivers"),
        (XFORMERS, "--torch-backend=cu126"),
    ],
)
def test_the_package_manager_is_the_machine_s(paste: str, typed: str) -> None:
    assert typed in commands(paste)


@pytest.mark.parametrize("system", ["Windows 11", "WSL2", "Fedora 37"])
def test_no_debian_driver_is_prescribed_elsewhere(system: str) -> None:
    assert "apt-get" not in commands(f"OS: {system}\n{OLD_DRIVER}")

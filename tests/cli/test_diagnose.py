"""`envdoctor diagnose` as its users meet it: what rivals get wrong, and what the contract promises."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from envdoctor.cli import main

REPORT_610 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.4     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA B200                    On  |   00000000:1B:00.0 Off |                    0 |
| N/A   35C    P0            140W / 1000W |       0MiB / 183359MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
"""


@pytest.fixture
def diagnose(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function from pasted text and options to (exit code, diagnosis)."""

    def run(text: str, *options: str) -> tuple[int, dict[str, Any]]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        code = main(["diagnose", "--from", "-", "--format", "json", *options])
        return code, json.loads(capsys.readouterr().out)

    return run


def errors(diagnosis: dict[str, Any]) -> list[str]:
    return [f["id"] for f in diagnosis["findings"] if f["severity"] == "error"]


def commands(diagnosis: dict[str, Any]) -> str:
    return "\n".join(c for f in diagnosis["findings"] for r in f["remedies"] for c in r["commands"])


def test_the_banner_since_driver_610_is_read(diagnose: Any) -> None:
    code, diagnosis = diagnose(REPORT_610 + "\ntorch: 2.14.0+cu130\n")
    driver = diagnosis["facts"]["driver"]
    assert (driver["version"]["value"], driver["cuda"]["value"]) == ("610.43.02", "13.4")
    assert (code, errors(diagnosis)) == (0, [])


@pytest.mark.parametrize("card", ["RTX 4090", "L40S", "RTX 3090", "L4", "B300", "GB10", "RTX 5090", "H200"])
def test_same_major_binaries_run(diagnose: Any, card: str) -> None:
    code, diagnosis = diagnose("torch: 2.14.0+cu130\ndriver: 610.43.02\n", "--gpu", card)
    assert (code, errors(diagnosis)) == (0, [])


@pytest.mark.parametrize("card", ["GTX 1080 Ti", "V100", "P100"])
def test_cuda_13_is_never_prescribed_to_pascal_and_volta(diagnose: Any, card: str) -> None:
    code, diagnosis = diagnose("torch: 2.14.0+cu130\ndriver: 580.95.05\n", "--gpu", card)
    assert code == 1
    assert "cu126" in json.dumps(diagnosis["findings"])
    assert "cu130" not in commands(diagnosis)


def test_minor_version_compatibility_is_honoured(diagnose: Any) -> None:
    code, diagnosis = diagnose("torch: 2.10.0+cu128\ndriver: 535.183.01\nGPU: NVIDIA A100-SXM4-80GB\n")
    assert (code, errors(diagnosis)) == (0, [])


def test_a_missing_nvcc_is_nobody_s_error(diagnose: Any) -> None:
    code, diagnosis = diagnose("torch: 2.14.0\nGPU: NVIDIA H100\ndriver: 580.95.05\nnvcc: not found\n")
    assert (code, errors(diagnosis)) == (0, [])


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "kernel"),
        (
            "OSError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
            "libcudart",
        ),
        (
            "ImportError: libcublas.so.12: cannot open shared object file: No such file or directory",
            "libcublas",
        ),
        (
            "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2E",
            "flash-attn",
        ),
        ("CUDA error: the provided PTX was compiled with an unsupported toolchain.", "PTX"),
        ("RuntimeError: CUDA Setup failed despite GPU being available.", "bitsandbytes"),
        ("AssertionError: Torch not compiled with CUDA enabled", "CPU"),
        ("Failed to initialize NVML: Driver/library version mismatch", "driver"),
    ],
)
def test_the_classic_errors_are_recognised_without_any_version(diagnose: Any, line: str, word: str) -> None:
    code, diagnosis = diagnose(line)
    assert code == 1
    first = diagnosis["findings"][0]
    assert word.lower() in json.dumps(first).lower()
    assert first["remedies"]
    assert any(r["commands"] or r["text"] for r in first["remedies"])


def test_an_error_line_alone_names_its_likeliest_causes_as_uncertain(diagnose: Any) -> None:
    _, diagnosis = diagnose("RuntimeError: \"triu_tril_cuda_template\" not implemented for 'BFloat16'")
    assert diagnosis["findings"][0]["certainty"] in ("likely", "uncertain")


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html", "sarif", "junit", "github"])
def test_the_exit_code_is_the_same_in_every_format(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, healthy = tmp_path / "broken.txt", tmp_path / "healthy.txt"
    broken.write_text("GPU: Tesla K80\ntorch: 2.9.0+cu128\n")
    healthy.write_text("GPU: Tesla T4\ntorch: 2.9.0+cu128\n")
    assert main(["diagnose", "--from", str(broken), "--format", form]) == 1
    assert main(["diagnose", "--from", str(healthy), "--format", form]) == 0
    assert capsys.readouterr().err == ""


def test_findings_carry_everything_the_contract_names(diagnose: Any) -> None:
    _, diagnosis = diagnose("trl==0.7.11\ntransformers==4.40.1\n")
    assert diagnosis["schema"] == "envdoctor.diagnosis/1"
    parts = {"schema", "tool", "examined", "facts", "checks", "findings", "plan", "exit_code"}
    assert set(diagnosis) == parts
    finding = next(f for f in diagnosis["findings"] if f["id"] == "PAIR-TRL-BELOW-0.8")
    assert set(finding) == {
        *("id", "severity", "summary", "cause", "evidence", "remedies", "certainty"),
        *("consequence_of", "rows", "sources"),
    }
    pins = finding["remedies"][0]["pins"]  # the release of the range that its neighbours take
    assert Version(pins["trl"].removeprefix("==")) >= Version("0.8")
    assert finding["remedies"][0]["commands"]
    assert finding["sources"][0].startswith("https://")
    assert {"fact": "trl", "value": "0.7.11", "source": "line 1"}.items() <= finding["evidence"][
        1
    ].items() or any(e["fact"] == "trl" and "1" in e["source"] for e in finding["evidence"])


def test_fail_on_moves_the_threshold_alone(diagnose: Any) -> None:
    text = "transformers==4.46.0\n"
    assert diagnose(text)[0] == 0
    assert diagnose(text, "--fail-on", "warning")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["diagnose", "--from", "nowhere.txt"], "nowhere.txt"),
        (["diagnose", "--select", "NO-SUCH-CHECK"], "NO-SUCH-CHECK"),
        (["rules", "NO-SUCH-CHECK"], "NO-SUCH-CHECK"),
    ],
)
def test_an_unusable_call_is_one_line_and_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_an_unknown_card_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listing = tmp_path / "freeze.txt"
    listing.write_text("torch==2.14.0\n")
    assert main(["diagnose", "--from", str(listing), "--gpu", "Voodoo 2"]) == 2
    assert "Voodoo 2" in capsys.readouterr().err


HOSTILE = (
    "torch: 2.0.1\ntransformers: 4.40.1\n"
    "RuntimeError: \x1b]52;c;aGk=\x07\"triu_tril_cuda_template\" not implemented for 'BFloat16'"
    " \x9b2J\u202egnp"
)


@pytest.mark.parametrize("form", ["text", "markdown", "github"])
def test_what_a_paste_says_never_commands_a_terminal(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paste = tmp_path / "log.txt"
    paste.write_text(HOSTILE, encoding="utf-8")
    main(["diagnose", "--from", str(paste), "--format", form])
    dangerous = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    assert not dangerous.search(capsys.readouterr().out)


def test_nothing_heavy_is_imported_for_help() -> None:
    code = (
        "import sys, envdoctor.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'rich', 'httpx', 'pynvml', 'clingo', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_diagnosing_imports_no_torch_and_no_network() -> None:
    code = (
        "import sys, envdoctor.cli as c\n"
        "c.main(['diagnose', '--format', 'json', '--output', '/dev/null'])\n"
        "print(sorted({'torch', 'rich', 'httpx', 'clingo', 'yaml'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_one_check_of_a_paste_runs_few_of_our_files(tmp_path: Path) -> None:
    paste = tmp_path / "report.txt"
    paste.write_text("torch 2.6.0\ntransformers 4.51.3\nGPU: A100\n")
    code = (
        f"import sys, envdoctor.cli as c\nc.main(['diagnose', '--select', 'XID', '--from', {str(paste)!r}])\n"
        "print(sum(name.startswith('envdoctor') for name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stderr) <= 60


def test_a_diagnosis_writes_nothing_at_home(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run(
        [sys.executable, "-m", "envdoctor", "diagnose", "--format", "json"],
        env={**environment, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
    )
    assert list(tmp_path.rglob("*")) == []


def test_we_cap_nobody_s_packages() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    section = project.read_text(encoding="utf-8").partition("dependencies = [")[2].partition("\n]")[0]
    dependencies = re.findall(r'"([^"]+)"', section)
    assert len(dependencies) >= 7
    assert not [d for d in dependencies if "<" in d.partition(";")[0] or "==" in d.partition(";")[0]]
    assert not [d for d in dependencies if d.startswith("torch")]

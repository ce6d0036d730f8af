"""An excerpt of a listing tells what stands in it, and of what does not stand in it nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envdoctor import diagnose_facts
from envdoctor.cli import main
from envdoctor.diagnosis import read_facts
from envdoctor.findings import Severity
from envdoctor.matrix import load_matrix

SAMPLE = Path(__file__).parent.parent / "pastes" / "samples" / "h200-pip_freeze.txt"

EXCERPT = """\
Relevant packages:
accelerate==1.2.1
bitsandbytes==0.45.0
datasets==3.2.0
deepspeed==0.16.2
huggingface-hub==0.27.0
llamafactory==0.9.1
numpy==1.26.4
peft==0.12.0
safetensors==0.4.5
tokenizers==0.21.0
torch==2.5.1
transformers==4.46.1
trl==0.9.6
vllm==0.6.6
"""


def missing(text: str, tmp_path: Path) -> list[str]:
    (tmp_path / "paste.txt").write_text(text)
    matrix = load_matrix()
    facts = read_facts([str(tmp_path / "paste.txt")], None, matrix)
    found = diagnose_facts(facts, matrix, complete=False).findings
    return [f.summary for f in found if f.severity is Severity.ERROR and "not installed" in f.summary]


def test_fourteen_relevant_packages_are_no_environment(tmp_path: Path) -> None:
    assert missing(EXCERPT, tmp_path) == []


def test_every_other_line_of_a_freeze_is_no_environment(tmp_path: Path) -> None:
    assert missing("\n".join(SAMPLE.read_text().splitlines()[::2]), tmp_path) == []


@pytest.mark.parametrize("name", ["tokenizers", "jinja2", "numpy", "pyyaml", "networkx"])
def test_one_package_taken_out_of_a_whole_freeze_is_missed_once(tmp_path: Path, name: str) -> None:
    lines = [line for line in SAMPLE.read_text().splitlines() if not line.lower().startswith(f"{name}==")]
    (summary,) = [s for s in missing("\n".join(lines), tmp_path) if "pydantic" not in s]
    assert f"requires {name}" in summary


def test_a_text_that_tells_settings_alone_gets_no_tick(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "question.md").write_text(
        "It never connects:\n\n    srun torchrun --nproc_per_node 8 train.py\n"
    )
    assert main(["diagnose", "--from", str(tmp_path / "question.md")]) == 0
    assert capsys.readouterr().out.startswith(
        "· nothing found in the settings told  no card, package or error"
    )


def test_of_a_range_that_is_cut_off_no_release_is_advised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.txt").write_text(
        'Traceback (most recent call last):\n  File "/srv/LLaMA-Factory/src/llamafactory/extras/misc.py", '
        'line 97, in check_dependencies\n    check_version("transformers>=4.41.2,<='
    )
    main(["diagnose", "--from", str(tmp_path / "log.txt"), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    finding = next(f for f in document["findings"] if f["id"] == "REQUIREMENT-REFUSED")
    assert "cut off" in finding["summary"]
    assert not any(remedy["pins"] for remedy in finding["remedies"])
    assert not document["plan"]["changes"]

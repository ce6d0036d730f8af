from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from envdoctor.bundling.issue import LINK_LIMIT, TITLE_LIMIT, compose, issue_link
from envdoctor.bundling.sharing import redact_diagnosis
from envdoctor.bundling.trackers import Report, find_tracker, only_the_user_can_fill
from envdoctor.diagnosis import diagnose_facts
from envdoctor.errors import InputError
from envdoctor.facts import Facts, from_json
from envdoctor.matrix import load_matrix, tables
from envdoctor.pastes import parse_paste

MATRIX = load_matrix()
PROJECTS = sorted(row.project for row in MATRIX.rows(tables.TrackerRow))
# Read from the projects' own templates; `matrices/trackers.toml` names the commits.
TEMPLATES = json.loads((Path(__file__).parent / "template_fields.json").read_text())
RECORDED = sorted((Path(__file__).parents[1] / "machines").glob("h200*.json"))
BROKEN = {
    "5090-with-cu124": (
        "PyTorch version: 2.6.0+cu124\nPython version: 3.11.9\nNvidia driver version: 570.86.10\n"
        "OS: Ubuntu 24.04\nGPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090\n"
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    ),
    "flash-attn-for-another-torch": (
        "torch==2.6.0\nflash-attn==2.5.8\n"
        "ImportError: /home/someone/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: "
        "undefined symbol: _ZN3c104cuda9SetDeviceEi\n"
    ),
    "bitsandbytes-without-cu129": (
        "torch==2.8.0+cu129\nbitsandbytes==0.46.0\nCould not find the bitsandbytes CUDA binary at "
        "PosixPath('/x/bitsandbytes/libbitsandbytes_cuda129.so')\n"
    ),
}
LOG = 'step 1\nTraceback (most recent call last):\n  File "x.py", line 1\nRuntimeError: no kernel image\n'


def facts_of(machine: str) -> Facts:
    if machine in BROKEN:
        return parse_paste(BROKEN[machine], "", MATRIX.lexicon)
    path = next(p for p in RECORDED if p.stem == machine)
    return from_json(json.loads(path.read_text()))


@pytest.fixture(scope="module", params=[*(p.stem for p in RECORDED), *BROKEN])
def report(request):
    diagnosis = diagnose_facts(facts_of(request.param), MATRIX)
    return Report(redact_diagnosis(diagnosis), {"01-train.log": LOG})


def test_the_broken_machines_are_broken():
    assert all(diagnose_facts(facts_of(name), MATRIX).findings for name in BROKEN)


KNOWN = """
accelerate axolotl bitsandbytes deepspeed flash-attn llamafactory
ms-swift pytorch transformers trl unsloth vllm
"""


def test_the_ten_projects_and_two_more_are_known():
    assert KNOWN.split() == PROJECTS


@pytest.mark.parametrize("project", sorted(TEMPLATES))
def test_the_fields_are_the_templates_in_their_order(project):
    ours = [
        {"label": f.label, "id": f.id, "type": f.type, "required": f.required, "options": list(f.options)}
        for f in find_tracker(MATRIX, project).field
    ]
    real = TEMPLATES[project]
    assert [f["label"] for f in ours] == [f["label"] for f in real]
    if "type" in real[0]:
        assert ours == real


def test_every_other_project_has_no_template():
    assert set(PROJECTS) - set(TEMPLATES) == {"flash-attn"}
    assert find_tracker(MATRIX, "flash-attn").template == ""


@pytest.mark.parametrize("project", PROJECTS)
def test_a_filled_template_has_every_field_and_ticks_nothing(project, report):
    tracker = find_tracker(MATRIX, project)
    text = compose(report, tracker)
    positions = [
        text.index(f"{mark}{field.label}") for field in tracker.field for mark in [_mark(tracker, field)]
    ]
    assert positions == sorted(positions)
    assert "[x]" not in text.lower()
    assert text.count("- [ ] ") == sum(len(f.options) for f in tracker.field)
    assert "RuntimeError: no kernel image" in text
    assert text.index("## envdoctor") > positions[-1]


def _mark(tracker, field):
    if field.type == "heading":
        return "## "
    return "**" if tracker.kind == "markdown" else "### "


@pytest.mark.parametrize("project", PROJECTS)
def test_no_field_is_empty(project, report):
    tracker = find_tracker(MATRIX, project)
    text = compose(report, tracker).split("\n## envdoctor")[0]
    sections = re.split(r"^(?:### |\*\*|## ).*$", text, flags=re.MULTILINE)[1:]
    kinds = [f.fill for f in tracker.field]
    assert all(
        body.strip() for body, kind in zip(sections, kinds, strict=False) if kind not in ("heading", "logs")
    )


@pytest.mark.parametrize("project", PROJECTS)
def test_the_link_opens_the_template_within_the_limit(project, report):
    tracker = find_tracker(MATRIX, project)
    link = issue_link(report, tracker)
    assert len(link) <= LINK_LIMIT
    parts = urlsplit(link)
    assert (parts.netloc, parts.path) == ("github.com", f"/{tracker.repository}/issues/new")
    query = parse_qs(parts.query)
    assert len(query.get("title", [""])[0]) <= TITLE_LIMIT
    assert query.get("template", [""])[0] == tracker.template
    prefilled = set(query) - {"template", "title", "body"}
    assert prefilled <= {f.id for f in tracker.field if f.type != "checkboxes"}


def test_forms_are_prefilled_by_their_fields_ids(report):
    query = parse_qs(urlsplit(issue_link(report, find_tracker(MATRIX, "transformers"))).query)
    assert "envdoctor:" in query["system-info"][0]
    assert "reproduction" in query


def test_what_only_the_user_can_say_is_named():
    assert "Expected behavior" in only_the_user_can_fill(find_tracker(MATRIX, "transformers"))
    assert "System Info" not in only_the_user_can_fill(find_tracker(MATRIX, "transformers"))


@pytest.mark.parametrize(
    ("name", "project"),
    [
        ("LLaMAFactory", "llamafactory"),
        ("flash_attn", "flash-attn"),
        ("vllm-project/vllm", "vllm"),
        ("msswift", "ms-swift"),
    ],
)
def test_projects_are_found_by_their_everyday_names(name, project):
    assert find_tracker(MATRIX, name).project == project


def test_an_unknown_project_is_refused_with_the_known_ones():
    with pytest.raises(
        InputError, match=r"--for jax: no tracker is known of it \(known: accelerate, axolotl"
    ):
        find_tracker(MATRIX, "jax")

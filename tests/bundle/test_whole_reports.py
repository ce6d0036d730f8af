"""Everything that a filled template says, for every tracker, of one machine with something in each place.

`whole_reports.md` is the record, and `whole_bundle.txt` that of a bundle with logs, a smoke's answer and
secrets in all of them. After a template or its filling changed, `python tests/bundle/test_whole_reports.py`
writes both anew, and their diff says what is filled in otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from envdoctor.bundling import Redactor, build_bundle
from envdoctor.bundling.building import preview
from envdoctor.bundling.excerpts import LogExcerpt
from envdoctor.bundling.issue import compose, issue_link
from envdoctor.bundling.known_values import KnownValues
from envdoctor.bundling.trackers import Report, find_tracker
from envdoctor.facts import Distribution, DriverVersion, Environment, Facts, Gpu, Host, Observed, Setting
from envdoctor.facts.model import Driver, Verdict
from envdoctor.findings import Certainty, CheckResult, Diagnosis, Evidence, Finding, Outcome, Remedy, Severity
from envdoctor.matrix import load_matrix, tables

RECORD = Path(__file__).with_name("whole_reports.md")
BUNDLE = Path(__file__).with_name("whole_bundle.txt")
VERSIONS = {"torch": "2.9.0", "transformers": "4.57.6", "vllm": "0.12.0", "trl": "0.25.0", "numpy": "2.3.4"}
FACTS = Facts(
    driver=Driver(version=Observed(DriverVersion.parse("580.95.05"), "NVML")),
    gpus=Observed(tuple(Gpu(i, "NVML", name="NVIDIA H200", nvlinks_up=18) for i in range(17)), "NVML"),
    host=Host(
        distro=Observed("Ubuntu 24.04", "os-release"),
        kernel=Observed("6.8.0", "uname"),
        arch=Observed("x86_64", "uname"),
        container=Observed("docker", "/.dockerenv"),
    ),
    environment=Environment(
        python=Observed("3.12.3", "pyvenv.cfg"),
        kind=Observed("venv", "pyvenv.cfg"),
        distributions={name: Distribution(name, "METADATA", version) for name, version in VERSIONS.items()},
    ),
    settings=(Setting("batch", "4", "a.yaml", "per_device_train_batch_size"), Setting("bf16", "true", "b")),
    variables={"NCCL_DEBUG": "INFO"},
    notes=("half a surrogate pair: \ud800",),
)
FINDINGS = tuple(
    Finding(
        f"RULE-{number}",
        severity,
        f"what is wrong, number {number}",
        "why it is",
        (Evidence("torch", "2.9.0", "METADATA"),),
        (Remedy("Do this.", (f"pip install a=={number}",)), Remedy("Or this.")),
        certainty=Certainty.CERTAIN,
        sources=("https://example.com/thread",),
    )
    for number, severity in enumerate((Severity.ERROR, Severity.ERROR, Severity.WARNING, Severity.NOTE))
)


def parts() -> Iterator[str]:
    """Yield each tracker's link and its template; last, for no tracker, what follows every template."""
    diagnosis = Diagnosis(FACTS, (), FINDINGS, 1, "0.1.0", "1", "2026-11-20")
    report = Report(diagnosis, {"01-train.log": "step 1\nTraceback\nValueError: no\n"})
    for tracker in load_matrix().rows(tables.TrackerRow):
        filled = compose(report, tracker).partition("\n## envdoctor\n")[0]
        yield f"===== {tracker.project}\n{issue_link(report, tracker)}\n\n{filled}"
    yield f"===== none\n{compose(report)}"


def record() -> bytes:
    return "\n".join(parts()).encode("utf-8", "replace")


LOGS = {
    "/home/mkowalski/train run.log": LogExcerpt(
        ((2, "kepler: token=tJ8-kd93/nPz+Q2"), (9, "ValueError: no")), 12, 400
    ),
    "..": LogExcerpt(((1, "hello from otto@example.org in /home/otto/x"),), 1, 44),
}
SMOKE = {
    "seconds": 4.5,
    "results": [
        {"op": "matmul_bf16@1", "first_ms": 3.25, "note": "s3cr3t", "runs": [{"repeat_ms": 1}, 7, "otto"]}
    ],
}


def whole_bundle() -> str:
    """Return a bundle as it would leave the machine, and what its sender is told."""
    known = KnownValues(
        secrets=("s3cr3t",), users=("mkowalski",), homes=("/home/mkowalski",), hosts=("kepler",)
    )
    verdicts = (
        Verdict("matmul_bf16@1", "pass", "smoke", "on kepler"),
        Verdict("own@kepler", "pass", "smoke"),
    )
    facts = replace(
        FACTS, verdicts=verdicts, variables={"NCCL_DEBUG": "INFO", "HF_HOME": "/home/mkowalski/hf"}
    )
    checks = (CheckResult("RULE-0", Outcome.FAILED, None, 3.5),)
    diagnosis = Diagnosis(facts, checks, FINDINGS[:1], 1, "0.1.0", "1", "2026-11-20")
    tracker = find_tracker(load_matrix(), "transformers")
    bundle = build_bundle(diagnosis, LOGS, SMOKE, tracker, Redactor(known, keep=("580.95.05",)))
    told = json.dumps(bundle.to_json(Path("b.zip")), indent=1)
    return "\n".join((preview(bundle), told)).replace("\\", "/") + "\n"


def test_a_bundle_holds_what_it_held() -> None:
    assert whole_bundle().splitlines() == BUNDLE.read_text(encoding="utf-8").splitlines()


def test_every_template_is_filled_as_it_was() -> None:
    assert record().decode().splitlines() == RECORD.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    RECORD.write_bytes(record())
    BUNDLE.write_text(whole_bundle(), encoding="utf-8")

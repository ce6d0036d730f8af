"""A user's program that uses the whole public door; it is type-checked strictly, and run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import envdoctor

PASTE = "GPU: Tesla T4\ntrl==0.7.11\ntransformers==4.40.1\ntorch==2.1.0\n"


def worst(diagnosis: envdoctor.Diagnosis) -> list[envdoctor.Finding]:
    return [finding for finding in diagnosis.findings if finding.severity is envdoctor.Severity.ERROR]


def remedies(finding: envdoctor.Finding) -> list[str]:
    chosen: tuple[envdoctor.Remedy, ...] = finding.remedies
    return [command for remedy in chosen for command in remedy.commands]


def driver_of(facts: envdoctor.Facts) -> str:
    version = facts.driver.version
    if isinstance(version, envdoctor.Unknown):
        return version.reason
    return str(version.value)


def cards_of(facts: envdoctor.Facts) -> tuple[envdoctor.Gpu, ...]:
    return facts.gpus.value if isinstance(facts.gpus, envdoctor.Observed) else ()


def pins_of(answer: envdoctor.PinSet) -> dict[str, str]:
    return {pin.name: pin.version for pin in answer.pins} if answer.status == "solved" else {}


def causes_of(answer: envdoctor.WhyNot) -> list[str]:
    return [cause.text for cause in answer.causes] if answer.forbidden else []


def fits(prediction: envdoctor.Prediction, gib: int) -> bool:
    return prediction.fits(gib * 2**30) is True


def files_of(profile: envdoctor.Profile) -> list[str]:
    return sorted(profile.files)


def passed(report: envdoctor.SmokeReport) -> bool:
    return report.exit_code == 0


def commands_of(fixed: envdoctor.Fixed) -> tuple[str, ...]:
    return fixed.plan.commands if fixed.plan else ()


def main(folder: Path) -> dict[str, object]:
    paste = folder / "report.txt"
    paste.write_text(PASTE, encoding="utf-8")
    facts = envdoctor.read([str(paste)])
    assert envdoctor.parse(PASTE) == facts
    diagnosis = envdoctor.diagnose([str(paste)])
    assert diagnosis.findings == envdoctor.diagnose_facts(facts).findings
    assert commands_of(envdoctor.fix(sources=[str(paste)]))
    first: envdoctor.CheckResult = diagnosis.checks[0]
    evidence: list[envdoctor.Evidence] = [seen for finding in worst(diagnosis) for seen in finding.evidence]
    pins = envdoctor.pin(["torch"], gpus=["T4"], driver="550.54.15", python_version="3.11", offline=True)
    run = envdoctor.StatedRun(method="qlora", batch=1, seq=1024)
    prediction = envdoctor.predict("qwen2.5-7b", run, gpu="RTX 4090", stack="torch=2.9.1")
    profile = envdoctor.choose_profile("qwen2.5-7b", gpus=["RTX 4090"], framework="trl", seq=1024)
    bundle: envdoctor.Bundle = envdoctor.bundle(folder / "report.zip", [str(paste)], force=True)
    script = folder / "train.py"
    script.write_text("from trl import SFTTrainer\nSFTTrainer(tokenizer=None)\n", encoding="utf-8")
    moved: envdoctor.Upgrade = envdoctor.upgrade(
        ["trl>=0.24"], [str(script)], target=str(paste), offline=True
    )
    try:
        envdoctor.read([str(folder / "missing.txt")])
        refused = ""
    except (envdoctor.InputError, envdoctor.Unavailable) as error:
        whole: envdoctor.EnvdoctorError = error
        refused = str(whole)
    return {
        "driver": driver_of(facts),
        "cards": [gpu.name for gpu in cards_of(facts)],
        "rule": first.rule,
        "evidence": len(evidence),
        "remedies": [command for finding in worst(diagnosis) for command in remedies(finding)],
        "pins": pins_of(pins),
        "causes": causes_of(envdoctor.why_not(["torch==1.0"], gpus=["RTX 5090"], offline=True)),
        "fits": fits(prediction, 24),
        "files": files_of(profile),
        "bundled": sorted(bundle.files),
        "shown": sorted(envdoctor.make_bundle([str(paste)]).files),
        "refused": refused,
        "broken": moved.exit_code,
    }


def of_this_machine() -> bool:
    return bool(driver_of(envdoctor.probe())) and passed(envdoctor.smoke(["matmul"], device="cpu"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(main(Path(name)), of_this_machine())

"""Holds SARIF and JUnit against the official schemas, and every format's places against the evidence.

    python benchmarks/machine_formats.py --sarif sarif-schema-2.1.0.json --junit junit-10.xsd TEXT...

The schemas are OASIS's (sarif-spec, `sarif-2.1/schema/`) and that of Jenkins' xunit plugin
(`types/model/xsd/`); neither comes with envdoctor. Needs `jsonschema` and `xmlschema`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path

import jsonschema
import xmlschema

from envdoctor import EnvdoctorError, diagnose
from envdoctor.report import Format
from envdoctor.report.places import find_places
from envdoctor.report.rendering import render


def main() -> None:
    """Judge the texts and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sarif", required=True)
    parser.add_argument("--junit", required=True)
    parser.add_argument("texts", nargs="+")
    args = parser.parse_args()
    schema = json.loads(Path(args.sarif).read_text(encoding="utf-8"))
    sarif = jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())
    junit = xmlschema.XMLSchema(args.junit)
    counts: Counter[str] = Counter()
    for text in args.texts:
        judge(text, sarif, junit, counts)
    print(json.dumps(counts, indent=1))


def judge(
    text: str, sarif: jsonschema.protocols.Validator, junit: xmlschema.XMLSchema, counts: Counter[str]
) -> None:
    """Count what one text's diagnosis breaks."""
    try:
        diagnosis = diagnose([text])
    except EnvdoctorError:
        counts["refused"] += 1
        return
    counts["texts"] += 1
    log = json.loads(render(diagnosis, Format.SARIF))
    for error in sarif.iter_errors(log):
        counts["sarif errors"] += 1
        print(text, error.json_path, error.message[:120])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "junit.xml")
        path.write_text(render(diagnosis, Format.JUNIT), encoding="utf-8")
        for error in junit.iter_errors(str(path)):
            counts["junit errors"] += 1
            print(text, error.path, error.reason)
    annotated = render(diagnosis, Format.GITHUB).count(",file=")
    lined = [f for f in diagnosis.findings if find_places(f.evidence, diagnosis.examined.files)]
    anchored = [r for r in log["runs"][0]["results"] if not _nowhere(r)]
    counts["findings"] += len(diagnosis.findings)
    counts["with a line in the evidence"] += len(lined)
    counts["anchored in SARIF"] += len(anchored)
    counts["annotated with a line"] += annotated
    for finding in diagnosis.findings:
        if finding not in lined:
            counts[f"without a line: {finding.id}"] += 1


def _nowhere(result: dict[str, list[dict[str, dict[str, dict[str, str]]]]]) -> bool:
    return result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "environment"


if __name__ == "__main__":
    main()

"""The one writer of JUnit XML, as Jenkins' schema has it (junit-10.xsd of its xunit plugin)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from envdoctor.report.document import visible
from envdoctor.values import NamedTuple

_NOT_XML = re.compile("[\ufffe\uffff]")


class Case(NamedTuple):
    """One test case; `kind`, `message` and `text` say why it did not pass; a passed one may have a `text`."""

    family: str
    name: str
    outcome: Literal["passed", "failure", "error", "skipped"] = "passed"
    message: str = ""
    text: str = ""
    kind: str = ""
    seconds: float = 0.0


def draw_junit(suite: str, cases: Iterable[Case]) -> str:
    """Return one suite, in ASCII, with its counts."""
    cases = list(cases)
    counts = Counter(case.outcome for case in cases)
    totals = {"tests": len(cases), "failures": counts["failure"], "errors": counts["error"]}
    attributes = {name: str(total) for name, total in totals.items()}
    attributes["time"] = f"{sum(case.seconds for case in cases):.3f}"
    root = ET.Element("testsuites", name="envdoctor", attrib=attributes)
    inner = {**attributes, "skipped": str(counts["skipped"])}  # Jenkins' schema has it here and not above
    ET.SubElement(root, "testsuite", name=suite, attrib=inner).extend(map(_element, cases))
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + str(ET.tostring(root, "us-ascii"), "ascii") + "\n"


def _element(case: Case) -> ET.Element:
    names = {"classname": f"envdoctor.{_clean(case.family)}", "name": _clean(case.name)}
    element = ET.Element("testcase", {**names, "time": f"{case.seconds:.3f}"})
    if case.outcome != "passed":
        why = ET.SubElement(element, case.outcome, message=_clean(case.message))
        if case.kind:
            why.set("type", case.kind)
        why.text = _clean(case.text) or None
    elif case.text:
        ET.SubElement(element, "system-out").text = _clean(case.text)
    return element


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", visible(text))

"""Measures what a diagnosis says of the package that raised an error: its name, and a range of its releases.

    python benchmarks/raisers.py FOLDER [--show]

Each file of the folder is JSON with a `text` and a `source_note` that tells `raises: PACKAGE VERSION`. The
package counts as named when one of the first two findings says it. Its release counts as right when what
these findings tell of the package's releases agrees: they say that very version, an origin's range holds
it, or the range of each remedy for the package leaves it out.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.rules.ranges import version_satisfies

_RAISES = re.compile(r"raises: ([\w.-]+) (\d[\w.+!-]*)")
_RANGE = re.compile(r"(\d+(?:\.\w+)+)(?: to (\d+(?:\.\w+)+)| and (later))")
FIRST = 2


def words(finding: Finding) -> str:
    """Return all that a finding says, in lower case, with one kind of dash."""
    pins = (f"{name} {spec}" for remedy in finding.remedies for name, spec in remedy.pins.items())
    told = (finding.summary, finding.cause, *(e.value for e in finding.evidence), *pins)
    return " ".join(told).lower().replace("_", "-")


def is_named(package: str, findings: Sequence[Finding]) -> bool:
    """True when one of the findings says the package."""
    return any(re.search(rf"(?<![\w-]){re.escape(package)}(?![\w-])", words(one)) for one in findings)


def is_right(package: str, version: Version, findings: Sequence[Finding]) -> bool:
    """True when what the findings tell of the package's releases agrees with the one that raised."""
    told = [one for one in findings if is_named(package, [one])]
    pins = [p for one in told for r in one.remedies for n, p in r.pins.items() if normalise(n) == package]
    if any(str(version) in words(one) for one in told):
        return True
    if any(_holds(match, version) for one in told for match in _RANGE.finditer(words(one))):
        return True
    return bool(pins) and not any(version_satisfies(version, pin) for pin in pins)


def _holds(match: re.Match[str], version: Version) -> bool:
    try:
        first, last = Version(match[1]), Version(match[2]) if match[2] else version
    except InvalidVersion:  # `3.so`
        return False
    return first.release[:2] <= version.release[:2] <= last.release[:2]


def findings_of(text: str, matrix: Matrix) -> Sequence[Finding]:
    """Return the diagnosis of a text."""
    return diagnose_facts(parse_paste(text, "", matrix.lexicon), matrix, complete=False).findings


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true", help="say more than the sums")
    options = parser.parse_args()
    matrix, whole, named, right, certain = load_matrix(), 0, 0, 0, 0
    for path in sorted(options.folder.glob("*.json")):
        record = json.loads(path.read_text())
        match = _RAISES.search(record.get("source_note", ""))
        if match is None:
            continue
        findings = findings_of(record["text"], matrix)
        package, version = normalise(match[1]), Version(match[2].split("+")[0])
        first = findings[:FIRST]
        whole += 1
        named += is_named(package, first)
        ok = is_right(package, version, first)
        right += ok
        certain += not ok and any(
            f.certainty is Certainty.CERTAIN and f.severity is Severity.ERROR for f in first
        )
        if options.show and not ok:
            told = [f"{one.id}: {one.summary[:140]}" for one in first]
            print(f"  {path.stem}: {package} {version}, {is_named(package, first)}\n      {told}")
    print(
        f"{whole} tracebacks: package named {named}, its release right {right};"
        f" others with a certain error {certain}"
    )


if __name__ == "__main__":
    main()

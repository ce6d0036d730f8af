"""DCGM's own diagnostic, asked where it is installed; its verdicts beside ours."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envdoctor.processes import run_child
from envdoctor.smokes.verdicts import Outcome, SmokeResult

COMMAND = "dcgmi"
LEVEL = "1"
"""Quick deployment checks, which leave cards to their programs; higher levels take minutes of whole cards."""
_MAX_BYTES = 4 << 20
_OUTCOMES: Mapping[str, Outcome] = {
    "pass": "passed", "passed": "passed", "fail": "failed", "failed": "failed", "error": "failed",
}  # fmt: skip
_SETTINGS = frozenset((1, 5))
"""DCGM_ERROR_MONITOR and DCGM_ERROR_CONFIG: something to watch or to set, nothing that is broken."""
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_WORDS = 300


def read_diagnostic(timeout_s: float) -> tuple[SmokeResult, ...]:
    """Return DCGM's verdicts, none where it is not installed; one that could not be had says why."""
    if shutil.which(COMMAND) is None:
        return ()
    done = run_child([COMMAND, "diag", "--run", LEVEL, "--json"], timeout_s=timeout_s, max_bytes=_MAX_BYTES)
    if done.timed_out:
        return (SmokeResult("dcgm", "timeout", f"dcgmi diag gave no answer within {timeout_s:g} s"),)
    found = tuple(parse_diagnostic(done.stdout))
    said = " ".join((done.stdout + " " + done.stderr).split())[:_WORDS]
    how = done.signal or f"status {done.returncode}"
    return found or (SmokeResult("dcgm", "skipped", f"dcgmi diag told no verdict ({how}): {said}"),)


def parse_diagnostic(text: str) -> Iterator[SmokeResult]:
    """Yield a verdict for each test of DCGM 3.x (`gpu_ids`) or 4.x (`entity_id`); none for other texts."""
    start = text.find("{")
    try:
        data = json.JSONDecoder().raw_decode(text, start)[0] if start >= 0 else {}
    except (ValueError, RecursionError):
        return
    root: dict[str, Any] = next((data[name] for name in _ROOTS if isinstance(data.get(name), dict)), {})
    for category in _tables(root.get("test_categories")):
        for test in _tables(category.get("tests")):
            yield _verdict(str(test.get("name", "?")), list(_tables(test.get("results"))))


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, dict))


def _verdict(name: str, results: list[dict[str, Any]]) -> SmokeResult:
    """Return the worst of a test's results; a word that is not known is no pass."""
    op = "dcgm." + "_".join("".join(c if c.isascii() and c.isalnum() else " " for c in name).lower().split())
    bad = [one for one in results if _outcome(one) == "failed"]
    if bad and all(_is_setting(one) for one in bad):
        return SmokeResult(op, "skipped", f"DCGM fails it for a setting: {_words(bad)}")
    if bad:
        return SmokeResult(op, "failed", f"DCGM: {_words(bad)}")
    rest = [one for one in results if _outcome(one) != "passed"]
    if rest or not results:
        return SmokeResult(op, "skipped", f"DCGM: {_words(rest) or 'no result'}")
    return SmokeResult(op, "passed")


def _outcome(result: Mapping[str, Any]) -> Outcome:
    return _OUTCOMES.get(str(result.get("status", "")).strip().lower(), "skipped")


def _warnings(result: Mapping[str, Any]) -> list[Any]:
    given = result.get("warnings")
    return given if isinstance(given, list) else [given] if given else []


def _is_setting(result: Mapping[str, Any]) -> bool:
    """True when DCGM's own severity of all its warnings calls it no fault."""
    told = _warnings(result)
    return bool(told) and all(
        isinstance(one, dict) and one.get("error_severity") in _SETTINGS for one in told
    )


def _words(results: Iterable[Mapping[str, Any]]) -> str:
    return "; ".join(dict.fromkeys(_line(one) for one in results))[:_WORDS]


def _line(result: Mapping[str, Any]) -> str:
    gpus = result.get("gpu_ids", result.get("entity_id"))
    said = [str(one.get("warning", "") if isinstance(one, dict) else one) for one in _warnings(result)]
    info = result.get("info")
    said = said or [str(one) for one in (info if isinstance(info, list) else [info]) if one]
    where = "" if gpus is None else f"GPU {gpus}: "
    return " ".join((where + (", ".join(said) or str(result.get("status", "no status")))).split())

"""No pattern costs more than linear time: each is attacked by its parse tree, and RE2 takes it."""

from __future__ import annotations

import gc
import os
import re
from functools import cache

import pytest
import re2
from attacks import Attack, attacks, irregular, looks_around
from collected_patterns import Collected, Unread, patterns_of_modules, patterns_of_rows
from growth import FACTOR, unit, worst

from envdoctor.cli import main
from envdoctor.findings import Evidence
from envdoctor.patterns import row_pattern
from envdoctor.report.places import find_place
from envdoctor.rules.bounds import FORMS as BOUNDS

PUT_TOGETHER = {
    "envdoctor/bundling/labels.py": "words and values of rows, collected as rows",
    "envdoctor/bundling/secret_formats.py": "rows, collected as rows",
    "envdoctor/fixing/lockfiles.py": "a package's escaped name before its versions",
    "envdoctor/harvest/outlines.py": "how far a line is indented, a number",
    "envdoctor/harvest/release_modules.py": "a folder's and a name's escaped parts",
    "envdoctor/matrix/forms.py": "what texts of rows must be like: they meet rows alone",
    "envdoctor/matrix/references.py": "rows of the matrix, read for the names of their groups",
    "envdoctor/matrix/lexicon.py": "PackageNames.mentions, collected whole",
    "envdoctor/pastes/settings.py": "a word of _TASKS between look-arounds",
    "envdoctor/patterns.py": "rows of the matrix, collected as rows",
    "envdoctor/pastes/console.py": "escaped texts and bounded values, and once what is not known",
    "envdoctor/probes/builds.py": "a name before BUILDS",
    "envdoctor/rules/bounds.py": "names, versions and ranges between words: each is an example here",
    "envdoctor/probes/host.py": "a field at the start of a line of /proc/meminfo",
    "envdoctor/probes/libraries.py": "a library's escaped name",
    "envdoctor/probes/nvidia_smi.py": "two patterns of digits",
    "envdoctor/probes/nvml_child.py": "a name at the start",
    "envdoctor/probes/toolkits.py": "READ",
    "envdoctor/report/markup.py": "one escaped character, again and again",
    "envdoctor/rules/asked.py": "an escaped keyword in a call of bounded length",
    "envdoctor/rules/generations.py": "a path of bounded length before an escaped name",
    "envdoctor/rules/told_arguments.py": "a library's escaped name before its release",
    "envdoctor/upgrading/judging.py": "escaped names between borders of words",
    "envdoctor/upgrading/upgrading.py": "escaped words between borders of words",
    "envdoctor/watch/places.py": "a setting's escaped name before its value",
    "envdoctor/rules/system_packages.py": "names of packages, from our own remedies",
    "envdoctor/rules/toward.py": "a flag of our own remedies and its number",
}
"""Where a pattern is put together as it runs, and why that is known to be linear; examples follow."""
EXAMPLES = [
    *(Collected("bounds", form.pattern, form.flags & ~re.UNICODE, False) for form, _ in BOUNDS),
    Collected(
        "console", r"torch:\s{1,8}['\"]?(\d[\w.+]{0,40})['\"]?\s{1,8}[^\n]{1,80}?\s{1,8}(True|False)", 0, True
    ),
    Collected("builds", r"torch_info\s*=\s*\{([^{}]*)\}", 0, False),
    Collected("meminfo", r"^MemTotal:\s+(\d+) kB", re.MULTILINE, False),
    Collected("libraries", r"nvidia\-nccl-cu\d+", 0, True),
    Collected("toolkits", r'"cuda"\s*:\s*\{[^{}]*"version"\s*:\s*"(\d\d?\.\d\d?)\b', 0, False),
    Collected("settings", r"(?<![a-z])grpo(?![a-z])", 0, False),
    Collected("markup", r"`+", 0, False),
    Collected("toward", r"--max-num-seqs[ =]64(?=\s|$)\s*", 0, False),
    Collected(
        "places",
        r"(?P<head>(?<![\w.-])[\"']?-{0,2}batch_size[\"']?(?:\s{0,8}[:=]\s{0,8}|\s{1,8})[\"']?)"
        r"(?P<value>[\w.]{1,40})",
        0,
        False,
    ),
]


@cache
def found() -> list[Collected | Unread]:
    """Read when first asked for: not in every worker that collects these tests."""
    return [*patterns_of_rows(), *patterns_of_modules()]


def patterns() -> list[Collected]:
    return [one for one in found() if isinstance(one, Collected)]


def test_every_pattern_is_collected_or_its_making_is_told():
    assert len(patterns()) > 650
    assert {one.place for one in found() if isinstance(one, Unread)} == set(PUT_TOGETHER)


def test_re2_takes_every_pattern_but_for_bounded_looks_around():
    for one in patterns():
        check_regular(one)


def check_regular(one: Collected) -> None:
    assert not irregular(one.pattern, one.flags), one.place
    widths = looks_around(one.pattern, one.flags)
    assert all(width <= 1000 for width in widths), one.place
    if not widths and not re.search("[\ud800-\udfff]", str(one.pattern)):
        options = re2.Options()
        options.log_errors = False
        re2.compile(one.pattern, options)


def test_rows_look_around_nowhere():
    assert [one.place for one in patterns_of_rows() if looks_around(one.pattern, one.flags)] == [
        "PackageNames.mentions"
    ]


ATTACKS = int(os.environ.get("ENVDOCTOR_ATTACKS", "3"))
"""How many ways each pattern is attacked; more are tried where a pattern is new."""


@pytest.fixture(scope="module")
def one() -> float:
    return unit()


@pytest.mark.parametrize("share", range(8))
def test_no_attack_costs_more_than_linear_time(share, one):
    gc.disable()
    try:
        for collected in [*patterns(), *EXAMPLES][share::8]:
            tried = attacks(collected.pattern, collected.flags, ATTACKS) or [Attack("", "a", "")]
            cost, attack = worst(collected, tried, one)
            if cost.growth > FACTOR:  # a machine's pause grows once, a pattern's cost each time
                again = [worst(collected, [attack], one)[0] for _ in range(3)]
                assert min(c.growth for c in again) <= FACTOR, (collected.place, attack, cost)
    finally:
        gc.enable()


NOT_LINEAR = [r"(\w+)\.so", r"a*a*b", r"(a+)+b", r"(?:\w+\s?)*!", r"[a-z]+\.so[a-z.]*x"]


@pytest.mark.parametrize("pattern", NOT_LINEAR)
def test_a_pattern_that_is_not_linear_is_found_out(pattern, one):
    collected = Collected("bad", pattern, 0, False)
    assert worst(collected, attacks(pattern, 0, 12), one)[0].growth > FACTOR


LINES = {
    "libraries before a symbol": "a.so" * 250 + " undefined symbol",
    "libraries and blanks": "a.so " * 5_000 + "undefined symbol",
    "libraries beside symbols": "a.so: undefined symbol" * 5_000,
    "versions of symbols": "a.so: symbol a, version a " * 4_000 + "with link time reference",
    "flash-attn": "flash_attn_2_cuda.so" * 5_000,
    "vllm": "vllm/_a.so" * 10_000,
    "one long word": "a" * 100_000 + " undefined symbol",
    "dots": "a." * 50_000 + "got an unexpected keyword argument",
    "requirements": "a a requires " * 8_000 + "which is incompatible",
    "specifiers": "a<" * 50_000 + " is required for a normal functioning of this module",
    "hosts": "a-" * 50_000 + ":1:1 [0] NCCL",
    "hosts of NCCL": "a.b-c:1:1 [0] NCCL" * 6_000,
    "statements": "a: b " * 20_000,
    "comments": "a: b\t" * 20_000 + "#",
    "keys": "_PW" * 30_000,
}  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", LINES)
def test_a_line_hangs_no_diagnosis(name, tmp_path):
    (tmp_path / "line.log").write_text(LINES[name], encoding="utf-8")
    assert main(["diagnose", "--from", str(tmp_path / "line.log"), "--format", "json"]) in (0, 1, 3)


@pytest.mark.timeout(200)
def test_no_line_hangs_a_bundle(tmp_path):
    log = tmp_path / "hostile.log"
    log.write_text("\n".join(LINES.values()), encoding="utf-8")
    assert main(["bundle", "--log", str(log), "-o", str(tmp_path / "b.zip")]) in (0, 1, 3)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("train.yaml:12", ("train.yaml", 12)),
        ("/a/reqs.txt, line 3", ("/a/reqs.txt", 3)),
        ("paste: a/b.py:7: error", ("a/b.py", 7)),
        ("12:34.py:5", ("34.py", 5)),
        ("nvml", None),
        ("a." * 50_000, None),
        ("a.:" * 50_000, None),
    ],
)
def test_a_place_is_read_in_linear_time(source, place):
    assert find_place((Evidence("f", "v", source),)) == place


@pytest.mark.parametrize("length", [10, 5_000])
def test_both_engines_find_the_same_in_rows(length):
    text = "x" * length + " /a/libnvJitLink.so.12: undefined symbol: __nvJitLinkAddData_12_1"
    found = row_pattern(r"(?P<lib>lib\w{1,20}\.so[\d.]{0,9}): undefined symbol: (?P<symbol>\w+)").search(text)
    assert found is not None
    assert found.groupdict() == {"lib": "libnvJitLink.so.12", "symbol": "__nvJitLinkAddData_12_1"}
    assert text[found.start() : found.end()].startswith("libnv")


def test_half_a_surrogate_pair_is_searched():
    assert row_pattern("b+").search("\ud800" * 600 + "bb") is not None

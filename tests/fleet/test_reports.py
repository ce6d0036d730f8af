"""The answer in each format, and the exit code it means."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import get_args

import pytest
from clusters import Json, cluster, merged
from junitparser import JUnitXml

from envdoctor.findings import Severity
from envdoctor.fleet.answer import FleetAnswer
from envdoctor.fleet.assembly import answer
from envdoctor.fleet.expecting import Expectation
from envdoctor.fleet.report import render
from envdoctor.report import Gathered, Look

FORMATS = get_args(Gathered)
HOSTILE = '\x1b]52;c;ZXZpbA==\x07<script>alert(1)</script>"\u202e'


def told(nodes: dict[str, Json], *lost: tuple[str, str], **options: object) -> FleetAnswer:
    merge = merged(nodes)
    for name, reason in lost:
        merge.add_unreached(name, reason)
    return answer(merge, **{"select": ("XID",), **options})  # type: ignore[arg-type]


@pytest.fixture
def drifting() -> FleetAnswer:
    nodes = cluster(8)
    nodes["node008"]["driver"]["version"]["value"] = "570.133.20"
    return told(nodes, ("node009", "no answer within 60 s"))


def test_json_has_the_shape_that_was_promised(drifting: FleetAnswer) -> None:
    data = json.loads(render(drifting, "json"))
    assert data["schema"] == "envdoctor.fleet/1"
    assert data["nodes"] == 9
    assert [g["nodes"] for g in data["groups"]] == ["node[001-007]", "node008"]
    assert data["drift"][0] | {"why": "", "source": "", "row": ""} == {
        "fact": "driver",
        "values": [
            {"value": "580.159.04", "nodes": "node[001-007]"},
            {"value": "570.133.20", "nodes": "node008"},
        ],
        "severity": "error",
        "consequence_of": None,
        "accepted": False,
        "why": "",
        "source": "",
        "row": "",
    }
    assert data["unreached"] == [{"nodes": "node009", "reason": "no answer within 60 s"}]
    assert data["exit_code"] == drifting.exit_code == 1


def test_text_names_the_odd_node_and_the_lost_one(drifting: FleetAnswer) -> None:
    text = render(drifting)
    assert text.startswith("✗ 9 nodes, 1 unreached, 1 fact in drift")
    assert re.search(r"→ 570[.]133[.]20 +node008 +\(1\)", text)
    assert "node009  no answer within 60 s" in text
    assert "\x1b" not in text
    assert "\x1b[1;31m" in render(drifting, look=Look(colour=True))


def test_text_draws_a_map_of_the_nodes(drifting: FleetAnswer) -> None:
    line = next(line for line in render(drifting).splitlines() if line.startswith("driver "))
    assert re.fullmatch(r"driver +─+✗+[?]+  node008: 570[.]133[.]20", line)


def test_differences_and_findings_fold_unless_all_are_asked_for() -> None:
    nodes = cluster(16)
    names = sorted(nodes["node001"]["environment"]["distributions"])
    for name, node in zip(names, nodes.values(), strict=False):
        node["environment"]["distributions"][name]["version"] = "0.0.1"
    found = told(nodes)
    assert re.search(r"\n\d+ more differing facts  \(--all shows them\)\n", render(found))
    assert "--all" not in render(found, unfold=True)
    page = render(found, "html")
    assert all(drift.fact in page for drift in found.drift)


def test_junit_is_read_by_others(drifting: FleetAnswer) -> None:
    suite = next(iter(JUnitXml.fromstring(render(drifting, "junit").encode())))
    assert (suite.tests, suite.failures, suite.errors) == (4, 2, 0)


def test_prometheus_lines_have_the_exposition_format(drifting: FleetAnswer) -> None:
    line = re.compile(r'[a-z_]+(\{([a-z]+="([^"\\\n]|\\.)*",?)*\})? \d+|# (HELP|TYPE) .+')
    text = render(drifting, "prometheus")
    assert all(line.fullmatch(one) for one in text.splitlines())
    assert 'envdoctor_fleet_drift{node="node008",fact="driver",value="570.133.20"' in text
    assert "envdoctor_fleet_exit_code 1" in text


def test_one_line_tells_state_nodes_and_counts(drifting: FleetAnswer) -> None:
    line = render(drifting, "nagios")
    assert line.startswith("ENVDOCTOR CRITICAL - 9 nodes, 1 unreached, 1 fact in drift; node009 unreached")
    assert "driver differs on node008 | nodes=9 unreached=1 drift=1 errors=0" in line
    assert (line.count("\n"), line.count("|")) == (1, 1)
    assert render(told(cluster(2)), "nagios").startswith("ENVDOCTOR OK - 2 nodes, no drift | nodes=2")


def test_sarif_has_a_result_for_each_entry(drifting: FleetAnswer) -> None:
    (run,) = json.loads(render(drifting, "sarif"))["runs"]
    assert [one["ruleId"] for one in run["results"]] == ["FLEET-UNREACHED", "FLEET-DRIVER"]
    assert "570.133.20 on node008" in run["results"][1]["message"]["text"]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_html_draws_a_map_and_fetches_nothing(drifting: FleetAnswer) -> None:
    tags = Tags()
    tags.feed(render(drifting, "html"))
    names = [tag for tag, _ in tags.seen]
    assert not {"script", "link", "img"} & set(names)
    rects = [attributes for tag, attributes in tags.seen if tag == "rect"]
    assert {"ok", "error", "dim"} <= {str(r["class"]) for r in rects}
    odd = next(r for r in rects if r["class"] == "error")
    assert float(str(odd["x"])) == pytest.approx(1000 * 7 / 9, abs=0.1)


def test_hostile_values_command_neither_terminal_nor_browser() -> None:
    nodes = cluster(3)
    nodes["node002"]["host"]["kernel"]["value"] = HOSTILE
    nodes["node003"]["variables"]["NCCL_ALGO"] = HOSTILE
    found = told(nodes, ("node004", HOSTILE))
    for format in FORMATS:
        text = render(found, format)
        if format != "json":
            assert not {"\x1b", "\x07", "\u202e"} & set(text), format
        assert "<script" not in text or format in ("text", "json", "prometheus", "markdown", "sarif")


def test_hostile_names_of_nodes_are_harmless_too(drifting: FleetAnswer) -> None:
    from dataclasses import replace

    from envdoctor.fleet.answer import Comparison

    hostile = replace(drifting, comparison=Comparison("f.json", (), (HOSTILE,), ()))
    for format in ("text", "html", "junit", "prometheus"):
        text = render(hostile, format)
        assert not {"\x1b", "\x07", "\u202e"} & set(text), format
        assert "<script" not in text or format == "text"


def test_ten_thousand_nodes_still_make_a_small_page() -> None:
    merge = merged(cluster(2))
    text = json.dumps(cluster(1)["node001"], indent=1).encode()
    for number in range(3, 10_000):
        merge.add(f"node{number:05d}", text)
    merge.add_unreached("node10000", "dead")
    page = render(answer(merge, select=("XID",)), "html")
    assert len(page) < 100_000


@pytest.mark.parametrize(
    ("plant", "fail_on", "expected"),
    [
        (None, Severity.ERROR, 0),
        (("transformers", "4.57.1"), Severity.ERROR, 1),
        (("kernel", "5.15"), Severity.ERROR, 1),
        (("fsspec", "2024.1.0"), Severity.ERROR, 0),
        (("fsspec", "2024.1.0"), Severity.NOTE, 1),
    ],
)
def test_exit_codes(plant: tuple[str, str] | None, fail_on: Severity, expected: int) -> None:
    nodes = cluster(4)
    if plant and plant[0] == "kernel":
        nodes["node004"]["host"]["kernel"]["value"] = plant[1]
    elif plant:
        nodes["node004"]["environment"]["distributions"][plant[0]]["version"] = plant[1]
    assert told(nodes, fail_on=fail_on).exit_code == expected


def test_a_fact_can_be_left_out() -> None:
    nodes = cluster(4)
    nodes["node004"]["host"]["kernel"]["value"] = "5.15"
    assert told(nodes, uncompared=("kern*",)).drift == ()


def test_where_no_node_answered_each_format_says_so() -> None:
    none = told({}, ("node001", "no answer within 60 s"), ("node002", "no answer within 60 s"))
    assert none.exit_code == 1
    assert render(none, "nagios").startswith("ENVDOCTOR CRITICAL - 2 nodes, 2 unreached")
    for form in ("text", "json", "markdown", "html", "junit", "sarif", "prometheus"):
        assert "no answer within" in render(none, form) or form == "prometheus"


def test_what_is_only_unknown_is_no_certain_fault() -> None:
    nodes = cluster(1)
    wanted = Expectation("E", {"FOO": "1"}, Severity.ERROR, own=True)
    assert "CRITICAL" in render(told(nodes, expected=(wanted,)), "nagios")
    unknown = replace(wanted, facts={"product": "DGX*"})
    nodes["node001"]["host"]["product"] = {"unknown": "closed"}
    line = render(told(nodes, expected=(unknown,)), "nagios")
    assert line.startswith("ENVDOCTOR UNKNOWN - 1 node"), line

"""What a plan downloads: by the sizes on record, by the index where it is asked, else not known, with why."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Distribution, Environment, Facts, Host, Observed
from envdoctor.findings import Download, Move, Plan
from envdoctor.matrix import load_matrix
from envdoctor.online import with_download
from envdoctor.plan.downloads import download_of
from envdoctor.report.plan import plan_section

MATRIX = load_matrix()
LINUX = Host(os=Observed("linux", "t"), arch=Observed("x86_64", "t"), glibc=Observed("2.35", "t"))
TORCH = Move("torch", "2.6.0", "2.7.1")


def facts(host: Host = LINUX, **more: object) -> Facts:
    environment = Environment(python=Observed("3.11.7", "t"), **{"complete": True, **more})
    return Facts(origin="probe", host=host, environment=environment)


def test_the_size_is_that_of_the_wheel_for_the_machine() -> None:
    (linux, arm, mac) = (
        download_of([TORCH], facts(host), MATRIX)
        for host in (
            LINUX,
            replace(LINUX, arch=Observed("aarch64", "t")),
            Host(os=Observed("macos", "t"), arch=Observed("arm64", "t")),
        )
    )
    assert linux == Download(821_174_704)
    assert arm is not None
    assert mac is not None
    assert (arm.size, mac.size) == (99_140_587, 68_925_988)


def test_packages_of_one_plan_are_added_up() -> None:
    both = download_of([TORCH, Move("nvidia-cudnn-cu12", None, "9.5.1.17")], facts(), MATRIX)
    assert both is not None
    assert both.size == 821_174_704 + 570_988_386
    assert both.to_json() == {"bytes": both.size, "complete": True, "unknown": {}}


@pytest.mark.parametrize(
    ("move", "host", "why"),
    [
        (TORCH, Host(), "the machine is not told"),
        (Move("torch", "2.6.0", "2.7.1+cu126"), LINUX, "the sizes of cu126 are not on record"),
        (Move("homegrown", None, ">=2"), LINUX, "not on record; --online asks the index"),
    ],
)
def test_what_is_not_known_is_never_a_number(move: Move, host: Host, why: str) -> None:
    assert download_of([move], facts(host), MATRIX) == Download(None, {move.name: why})


def test_condas_packages_have_other_sizes() -> None:
    torch = Distribution("torch", "conda-meta", "2.6.0", origin="conda")
    told = download_of([TORCH], facts(kind=Observed("conda", "t"), distributions={"torch": torch}), MATRIX)
    assert told is not None
    assert told.size is None
    assert "conda" in told.unknown["torch"]


def test_where_not_all_is_told_more_may_come_along() -> None:
    told = download_of([TORCH], facts(complete=False), MATRIX)
    assert told is not None
    assert not told.to_json()["complete"]


def test_nothing_is_downloaded_for_what_goes() -> None:
    assert download_of([Move("tensorflow", "2.1", None)], facts(), MATRIX) is None


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An index on loopback that tells one size."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            files = [
                {
                    "filename": "markupsafe-3.0.2-py3-none-any.whl",
                    "url": "m.whl",
                    "hashes": {},
                    "size": 20_000,
                }
            ]
            page = {"meta": {"api-version": "1.1"}, "name": "markupsafe", "files": files}
            body = json.dumps(page).encode()
            self.send_response(200 if "markupsafe" in self.path else 404)
            self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    yield
    server.shutdown()
    server.server_close()


def asked(*moves: Move) -> Download | None:
    """What the index is asked about moves none of which is on record."""
    unknown = Download(None, {move.name: "not on record" for move in moves})
    told = replace(diagnose_facts(facts(), MATRIX), plan=Plan(True, moves, download=unknown))
    plan = with_download(told, MATRIX).plan
    return plan.download if plan else None


def test_the_index_tells_what_is_not_on_record(index: None) -> None:
    told = asked(Move("markupsafe", "1.0", "3.0.2"), Move("idna", "1", "3.7"))
    assert told == Download(20_000, {"idna": "the index has no such package"})


def test_an_index_that_cannot_be_asked_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "ftp://127.0.0.1/simple")
    told = asked(Move("idna", "1", "3.7"))
    assert told is not None
    assert "neither http, https nor file" in told.unknown["idna"]


def test_the_text_tells_the_cost() -> None:
    unknown = {"idna": "not on record", "click": "not on record"}
    section = plan_section(Plan(True, (TORCH,), download=Download(2_500_000_000, unknown, whole=False)))
    told = [row.words for row in section.blocks[0].rows if row.label in ("cost", "")]
    assert "at most 2.5 GB to download, beside what is not known; what they bring along is not told" in told
    assert "size not known: idna, click (not on record)" in told

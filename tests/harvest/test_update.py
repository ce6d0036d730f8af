"""An update reads only what is new, follows what is required, and never spoils what was there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_index import FakeFile, FakeIndex, Fault, wheel_bytes
from packaging.specifiers import SpecifierSet

from envdoctor.errors import Unavailable
from envdoctor.harvest.closure import followed
from envdoctor.harvest.store import PackageStore
from envdoctor.harvest.update import Updater, UpdateReport


@pytest.fixture
def store(tmp_path) -> PackageStore:
    return PackageStore(tmp_path / "packages")


def update(index: FakeIndex, store: PackageStore, *roots: str, **settings) -> UpdateReport:
    with index.fetcher(**settings) as fetcher:
        return Updater(fetcher, index.url, store, today="2026-11-21").run(roots or ("demo",))


def contents(store: PackageStore) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.folder.glob("*.json")}


def test_a_record_holds_every_version_with_what_it_requires(index: FakeIndex, store):
    index.add_wheel("demo", "1.0", "numpy (>=1.20)", requires_python=">=3.9")
    index.add_wheel("demo", "2.0", "torch >=1.0.*")
    index.add_wheel("numpy", "1.26")
    report = update(index, store)
    assert report.problems == ()
    record = store.read("demo")
    assert record is not None
    assert (record["fetched"], record["core"]) == ("2026-11-21", False)
    first, second = record["releases"]["1.0"], record["releases"]["2.0"]
    assert first["requires"] == ["numpy>=1.20"]
    assert first["files"][0]["requires_python"] == ">=3.9"
    assert first["files"][0]["uploaded"] == "2026-01-02T03:04:05Z"
    assert second["requires"] == []
    assert list(second["unusable"]) == ["torch >=1.0.*"]


def test_what_is_required_is_followed_with_the_extras_asked_for(index: FakeIndex, store):
    index.add_wheel(
        "demo", "1.0", "middle[fast]", 'windows-only; sys_platform == "win32"', 'tests; extra == "dev"'
    )
    index.add_wheel("middle", "1.0", "plain", 'quick; extra == "fast"', 'slow; extra == "slow"')
    for name in ("plain", "quick", "slow", "tests", "windows-only"):
        index.add_wheel(name, "1.0")
    update(index, store)
    assert store.names() == ["demo", "middle", "plain", "quick"]


def test_a_marker_that_compares_words_as_versions_is_read_as_far_as_it_can_be():
    lines = (
        "gears; implementation_name === 'cpython'",
        "wheels; implementation_name === 'pypy'",
        "cogs; implementation_name ~= 'cpython'",
    )
    assert [name for name, _ in followed(lines, ())] == ["gears"]


def test_an_extra_asked_for_later_is_followed_too():
    lines = ['a; extra == "x"', 'b; python_version < "3.8"', 'c; platform_machine == "aarch64"', "d"]
    assert {name for name, _ in followed(lines, ())} == {"c", "d"}
    assert {name for name, _ in followed(lines, {"x"})} == {"a", "c", "d"}


def test_a_required_package_that_the_index_lacks_is_no_failure(index: FakeIndex, store):
    index.add_wheel("demo", "1.0", "nowhere")
    report = update(index, store)
    assert report.problems == ()
    assert store.names() == ["demo"]


def test_only_new_releases_are_read(index: FakeIndex, store):
    index.add_wheel("demo", "1.0")
    update(index, store)
    index.requests.clear()
    index.add_wheel("demo", "2.0")
    assert update(index, store).read == 1
    assert [path for path in index.paths() if path.startswith("/files/")] == [
        "/files/demo-2.0-py3-none-any.whl"
    ]


def test_an_unchanged_index_costs_one_conditional_request_a_package(index: FakeIndex, store):
    index.add_wheel("demo", "1.0")
    update(index, store)
    before = contents(store)
    index.requests.clear()
    assert update(index, store).read == 0
    assert index.paths() == ["/simple/demo/"]
    assert contents(store) == before


def test_a_release_yanked_later_is_seen(index: FakeIndex, store):
    file = index.add_wheel("demo", "1.0")
    update(index, store)
    file.yanked = True
    update(index, store)
    record = store.read("demo")
    assert record is not None
    assert record["releases"]["1.0"]["files"][0]["yanked"]


def test_prereleases_are_listed_and_read_only_when_no_final_release_followed(index: FakeIndex, store):
    for version in ("1.0rc1", "1.0", "2.0b1"):
        index.add_wheel("demo", version)
    update(index, store)
    record = store.read("demo")
    assert record is not None
    read = {v: r["requires"] is not None for v, r in record["releases"].items()}
    assert read == {"1.0rc1": False, "1.0": True, "2.0b1": True}
    assert "pre-release" in record["releases"]["1.0rc1"]["requires_reason"]


def test_releases_from_before_the_floor_are_listed_with_the_reason(index: FakeIndex, store):
    for minor in range(11):
        index.add_wheel("demo", f"1.{minor}", uploaded="2019-01-01T00:00:00Z")
        index.add_wheel("einops", f"0.{minor}", uploaded="2019-01-01T00:00:00Z")
    update(index, store, "demo", "einops")
    old, core = store.read("demo"), store.read("einops")
    assert old is not None
    assert core is not None
    assert old["floor"]
    assert [v for v, r in old["releases"].items() if r["requires"] is None] == ["1.0"]
    assert "before this day" in old["releases"]["1.0"]["requires_reason"]
    assert all(release["requires"] == [] for release in core["releases"].values())


def test_a_broken_wheel_is_that_releases_affair(index: FakeIndex, store):
    index.add_wheel("demo", "1.0")
    index.add("demo", FakeFile("demo-2.0-py3-none-any.whl", b"rubbish"))
    assert update(index, store).problems == ()
    record = store.read("demo")
    assert record is not None
    assert record["releases"]["1.0"]["requires"] == []
    assert "not a zip archive" in record["releases"]["2.0"]["requires_reason"]
    index.requests.clear()
    index.etags = False
    update(index, store)
    assert index.paths() == ["/simple/demo/"]


FAULTS = {
    "page gone": ("/simple/demo/", Fault(status=404), "not there"),
    "page 429": ("/simple/demo/", Fault(status=429), "answered 429"),
    "page 500": ("/simple/demo/", Fault(status=500), "answered 500"),
    "page cut short": ("/simple/demo/", Fault(truncated=True), "broke off"),
    "page silent": ("/simple/demo/", Fault(silent=True), "no answer in time"),
    "page of rubbish": ("/simple/demo/", Fault(body=b"<p>Please log in</p>"), "page"),
    "page emptied": (
        "/simple/demo/",
        Fault(body=b'{"name": "demo", "files": []}'),
        "lists 0 releases where 2",
    ),
    "page of another": ("/simple/demo/", Fault(body=b'{"name": "evil", "files": []}'), "another project"),
    "file 503": ("/files/demo-3.0-py3-none-any.whl", Fault(status=503), "answered 503"),
    "file cut short": ("/files/demo-3.0-py3-none-any.whl", Fault(truncated=True), "parts"),
    "metadata of wrong hash": (
        "/files/demo-3.0-py3-none-any.whl.metadata",
        Fault(body=b"Name: demo\nVersion: 3.0\n\n"),
        "wrong hash",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_breaks_the_former_record_stays_in_force(index: FakeIndex, store, fault):
    path, answer, reason = FAULTS[fault]
    index.add_wheel("demo", "1.0", "numpy")
    index.add_wheel("demo", "2.0", "numpy")
    index.add_wheel("numpy", "2.0")
    update(index, store)
    before = contents(store)["demo.json"]
    metadata = b"Name: demo\nVersion: 3.0\nRequires-Dist: numpy\n\n" if "metadata" in fault else None
    index.add_wheel("demo", "3.0", metadata=metadata)
    index.faults[path] = answer
    report = update(index, store, timeout=0.2)
    assert len(report.problems) == 1
    assert report.problems[0].startswith("demo: ")
    assert reason in report.problems[0]
    assert contents(store)["demo.json"] == before
    index.faults.clear()
    assert update(index, store).problems == ()


def test_an_index_that_is_down_harms_nothing(index: FakeIndex, store):
    index.add_wheel("demo", "1.0")
    update(index, store)
    before = contents(store)
    index.close()
    report = update(index, store)
    assert "cannot be reached" in report.problems[0]
    assert contents(store) == before


def test_a_dead_index_is_not_asked_for_every_package(index: FakeIndex, store):
    names = [f"demo-{n}" for n in range(40)]
    index.faults = {f"/simple/{name}/": Fault(status=403) for name in names}
    with pytest.raises(Unavailable, match=r"no package could be read.*demo-\d+.*answered 403"):
        update(index, store, *names)
    assert len(index.requests) < 40
    assert store.names() == []


def test_deep_facts_that_fail_are_asked_for_again(index: FakeIndex, store):
    members = {"bitsandbytes/libbitsandbytes_cuda126.so": b""}
    metadata = b"Name: bitsandbytes\nVersion: 0.46.1\n\n"
    file = index.add_wheel("bitsandbytes", "0.46.1", members=members, metadata=metadata)
    index.faults[f"/files/{file.filename}"] = Fault(status=503)
    assert update(index, store, "bitsandbytes").problems
    index.faults.clear()
    assert update(index, store, "bitsandbytes").problems == ()
    record = store.read("bitsandbytes")
    assert record is not None
    assert record["releases"]["0.46.1"]["deep"]["platforms"]["x86_64"]["cuda"] == ["126"]


def test_progress_is_told_of_every_package(index: FakeIndex, store):
    index.add_wheel("demo", "1.0", "numpy")
    index.add_wheel("numpy", "2.0")
    seen: list[tuple[str, int, int]] = []
    with index.fetcher() as fetcher:
        updater = Updater(
            fetcher,
            index.url,
            store,
            progress=lambda outcome, done, total: seen.append((outcome.name, done, total)),
        )
        updater.run(["demo"])
    assert seen == [("demo", 1, 2), ("numpy", 2, 2)]


def run_update(index: FakeIndex, home: Path, *arguments: str, **environ: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "envdoctor", "matrix", "update", "--index-url", index.url, *arguments]
    return subprocess.Popen(
        command,
        env={**os.environ, "XDG_DATA_HOME": str(home), "ENVDOCTOR_MATRICES": str(home), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_command_updates_the_users_data_and_says_so(index: FakeIndex, tmp_path):
    index.add_wheel("demo", "1.0", "numpy (>=1)")
    index.add_wheel("numpy", "2.0")
    done = run_update(index, tmp_path, "--package", "demo", "--format", "json")
    out, err = done.communicate()
    assert done.returncode == 0, err
    assert json.loads(out) == {
        "schema": "envdoctor.matrix-update/1",
        "packages": 2,
        "releases": 2,
        "read": {"demo": 1, "numpy": 1},
    }
    assert (tmp_path / "envdoctor" / "releases" / "snapshot.bin").is_file()


def test_the_command_fails_in_one_line_with_exit_3(index: FakeIndex, tmp_path):
    index.add_wheel("demo", "1.0")
    index.faults["/simple/demo/"] = Fault(status=403)
    done = run_update(index, tmp_path, "--package", "demo")
    out, err = done.communicate()
    assert (done.returncode, out) == (3, "")
    assert err == (
        "envdoctor: 1 of 1 packages keep their former facts: "
        f"demo: {index.url}/demo/: the server answered 403\n"
    )


def test_a_home_that_cannot_be_written_is_exit_3(index: FakeIndex, tmp_path):
    (tmp_path / "envdoctor").write_text("a file where the folder should be")
    done = run_update(index, tmp_path, "--package", "demo")
    _, err = done.communicate()
    assert done.returncode == 3
    assert err.count("\n") == 1
    assert "cannot be written" in err


def test_two_updates_at_once_do_not_mix(index: FakeIndex, tmp_path):
    index.add_wheel("demo", "1.0")
    index.faults["/simple/demo/"] = Fault(silent=True)
    first = run_update(index, tmp_path, "--package", "demo")
    _wait_until(lambda: "/simple/demo/" in index.paths())
    second = run_update(index, tmp_path, "--package", "demo")
    _, err = second.communicate()
    first.kill()
    first.communicate()
    assert second.returncode == 3
    assert "another update is running" in err


def test_an_update_killed_half_way_is_taken_up_by_the_next(index: FakeIndex, tmp_path):
    for name in ("demo", "second"):
        index.add_wheel(name, "1.0")
    index.faults["/simple/second/"] = Fault(silent=True)
    folder = tmp_path / "envdoctor" / "packages"
    first = run_update(index, tmp_path, "--package", "demo", "--package", "second")
    _wait_until(lambda: (folder / "demo.json").exists())
    first.send_signal(signal.SIGKILL)
    first.communicate()
    written = (folder / "demo.json").read_bytes()
    index.faults.clear()
    index.requests.clear()
    done = run_update(index, tmp_path, "--package", "demo", "--package", "second")
    _, err = done.communicate()
    assert done.returncode == 0, err
    assert (folder / "demo.json").read_bytes() == written
    assert (folder / "second.json").exists()
    assert "/files/demo-1.0-py3-none-any.whl" not in index.paths()


def test_ctrl_c_leaves_at_once_and_the_former_facts_stay(index: FakeIndex, tmp_path):
    index.add_wheel("demo", "1.0")
    index.faults["/simple/demo/"] = Fault(silent=True)
    running = run_update(index, tmp_path, "--package", "demo")
    _wait_until(lambda: "/simple/demo/" in index.paths())
    running.send_signal(signal.SIGINT)
    _, err = running.communicate()
    assert (running.returncode, err) == (130, "")
    assert index.paths() == ["/simple/demo/"]


def _wait_until(ready) -> None:
    end = time.monotonic() + 30
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_store_that_cannot_be_written_is_unavailable(index: FakeIndex, tmp_path):
    (tmp_path / "packages").write_text("")
    with pytest.raises(Unavailable, match="cannot be written"):
        update(index, PackageStore(tmp_path / "packages"))


def test_a_disk_that_fills_up_keeps_what_was_there(index: FakeIndex, store, monkeypatch):
    index.add_wheel("demo", "1.0")
    update(index, store)
    before = contents(store)
    index.add_wheel("demo", "2.0")

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    report = update(index, store)
    assert "No space left on device" in report.problems[0]
    assert contents(store) == before


def test_requirements_are_those_of_the_wheel_for_linux(index: FakeIndex, store):
    index.add_wheel("demo", "1.0", "for-windows", tag="cp312-cp312-win_amd64")
    index.add(
        "demo",
        FakeFile("demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl", wheel_bytes("demo", "1.0", ("numpy",))),
    )
    update(index, store)
    record = store.read("demo")
    assert record is not None
    assert record["releases"]["1.0"]["requires"] == ["numpy"]
    assert len(record["releases"]["1.0"]["files"]) == 2


def test_releases_read_again_keep_the_rest_and_follow_nothing(index: FakeIndex, store):
    index.add_wheel("demo", "1.0", "numpy")
    index.add_wheel("demo", "2.0", "numpy")
    index.add_wheel("numpy", "1.26")
    update(index, store)
    record = store.read("demo")
    for release in record["releases"].values():
        release |= {"requires": ["future"], "deep": {"kept": True}}
    store.write("demo", record)
    index.requests.clear()
    with index.fetcher() as fetcher:
        reread = {"demo": SpecifierSet("<2")}
        Updater(fetcher, index.url, store, today="2026-11-21", reread=reread).run(reread, follow=False)
    releases = store.read("demo")["releases"]
    assert (releases["1.0"]["requires"], releases["1.0"]["deep"]) == (["numpy"], {"kept": True})
    assert releases["2.0"]["requires"] == ["future"]
    assert not any("numpy" in path for path in index.paths())


def test_the_command_wants_a_requirement_to_read_again(index: FakeIndex, tmp_path):
    done = run_update(index, tmp_path, "--reread", "torch <")
    out, err = done.communicate()
    assert (done.returncode, out) == (2, "")
    assert "--reread: " in err


def test_a_named_package_is_renewed_in_the_snapshot_and_the_rest_stays(index: FakeIndex, tmp_path):
    from envdoctor.harvest.overlay import extended, extended_bytes
    from envdoctor.harvest.snapshot_compile import Compiler
    from envdoctor.matrix.snapshot import parse_snapshot

    def record(name: str, **releases: list[str]) -> dict:
        files = {v: f"{name}-{v.strip('v').replace('_', '.')}-py3-none-any.whl" for v in releases}
        return {
            "name": name,
            "releases": {
                version.strip("v").replace("_", "."): {
                    "files": [
                        {"filename": files[version], "yanked": False, "uploaded": "2026-01-01T00:00:00Z"}
                    ],
                    "requires": requires,
                }
                for version, requires in releases.items()
            },
        }

    compiler = Compiler()
    for one in (record("app", v1=["base>=1,<3"]), record("base", v1=[], v2=[]), record("other", v1=["base"])):
        compiler.add(one)
    before = parse_snapshot(compiler.bytes("2026-01-01"), "before")
    renewed = record("base", v1=[], v2=["fresh>=5"], v3=[])
    after = parse_snapshot(extended_bytes(before, [renewed, record("fresh", v5=[], v6=[])]), "after")
    base, app, fresh = (after.package(name) for name in ("base", "app", "fresh"))
    assert (after.date, base.versions, fresh.versions) == ("2026-01-01", ["1", "2", "3"], ["5", "6"])
    (wanted,) = app.requirements(app.row_of(0))
    assert (wanted.name, base.spec_text(wanted.spec), base.spec_mask(wanted.spec)) == (
        "base",
        "<3,>=1",
        0b011,
    )
    (needed,) = base.requirements(base.row_of(1))
    assert fresh.spec_mask(needed.spec) == 0b11
    assert after.package("other").raw == before.package("other").raw
    twice = extended(extended(before, [record("fresh", v5=[])]), [record("later", v1=["fresh"])])
    assert [twice.package(name).versions for name in ("fresh", "later", "base")] == [["5"], ["1"], ["1", "2"]]

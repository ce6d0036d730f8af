"""A snapshot turned back into records: nothing that the solver uses is lost on the way."""

from __future__ import annotations

import pytest

from envdoctor.harvest.release_tables import transformers_table
from envdoctor.harvest.seed import marker_text, package_record, seed_store
from envdoctor.harvest.snapshot_compile import Compiler
from envdoctor.harvest.store import SCHEMA, PackageStore
from envdoctor.harvest.update import settled
from envdoctor.matrix.snapshot import Snapshot, parse_snapshot

WHEEL = "transformers-5.0.0-cp312-cp312-manylinux_2_28_x86_64.whl"


def record(name: str, releases: dict) -> dict:
    return {"schema": SCHEMA, "name": name, "fetched": "2026-11-20", "etag": "x", "releases": releases}


def file(filename: str, **more) -> dict:
    base = {
        "filename": filename,
        "requires_python": ">=3.10",
        "yanked": False,
        "uploaded": "2026-01-02T03:04:05Z",
    }
    return {**base, "size": 1, "sha256": "0" * 64, **more}


DEEP = {
    "requires": {"torch": ">=2.2.0"},
    "kind": {"torch": "disabled"},
    "declared": {},
    "source": f"wheel:{WHEEL}",
}
TRANSFORMERS = record(
    "transformers",
    {
        "5.0.0": {
            "files": [file(WHEEL), file("transformers-5.0.0.tar.gz", uploaded="2026-01-04T00:00:00Z")],
            "requires": [
                "numpy>=1.17",
                'tokenizers<1,>=0.22; python_version < "3.14" and (os_name == "posix" or os_name == "nt")',
                'torch[opt]>=2.2; extra == "torch"',
                'triton; sys_platform == "linux" and extra == "torch"',
            ],
            "deep": DEEP,
        },
        "5.0.1": {
            "files": [file("transformers-5.0.1.tar.gz", yanked=True)],
            "requires": None,
            "requires_reason": "x",
        },
    },
)


@pytest.fixture
def snapshot() -> Snapshot:
    compiler = Compiler()
    compiler.add(TRANSFORMERS)
    return parse_snapshot(compiler.bytes("2026-11-20"), "test")


def test_a_record_comes_back_with_files_requirements_and_minimums(snapshot):
    package = snapshot.package("transformers")
    assert package is not None
    releases = package_record(snapshot, package)["releases"]
    first = releases["5.0.0"]
    assert sorted(f["filename"] for f in first["files"]) == [WHEEL, "transformers-5.0.0.tar.gz"]
    assert {f["requires_python"] for f in first["files"]} == {">=3.10"}
    assert [f["uploaded"][:10] for f in sorted(first["files"], key=lambda f: f["filename"])] == [
        "2026-01-02",
        "2026-01-04",
    ]
    assert first["requires"] == [
        "numpy>=1.17",
        'tokenizers<1,>=0.22; python_version < "3.14" and (os_name == "posix" or os_name == "nt")',
        'torch[opt]>=2.2; extra == "torch"',
        'triton; (sys_platform == "linux") and extra == "torch"',
    ]
    assert first["deep"]["requires"] == {"torch": ">=2.2.0"}
    assert releases["5.0.1"]["requires"] is None
    assert releases["5.0.1"]["files"][0]["yanked"]


def test_compiling_what_was_seeded_gives_the_same_facts_again(snapshot, tmp_path):
    store = PackageStore(tmp_path)
    seed_store(store, snapshot, snapshot.names())
    seeded = store.read("transformers")
    assert seeded is not None
    compiler = Compiler()
    compiler.add(seeded)
    again = parse_snapshot(compiler.bytes("2026-11-20"), "test")
    package = again.package("transformers")
    assert package is not None
    assert package_record(again, package) == seeded


def test_what_the_snapshot_could_not_read_is_not_read_by_every_user_again(snapshot):
    releases = package_record(snapshot, snapshot.package("transformers"))["releases"]
    assert releases["5.0.1"]["requires"] is None
    assert all(settled(release) for release in releases.values())


def test_an_older_record_keeps_what_it_has_and_gains_what_it_lacks(snapshot, tmp_path):
    store = PackageStore(tmp_path)
    own = {"files": [], "requires": ["mine"]}
    store.write("transformers", {**record("transformers", {"5.0.1": own}), "fetched": "2026-11-01"})
    seed_store(store, snapshot, snapshot.names())
    merged = store.read("transformers")
    assert merged is not None
    assert merged["releases"]["5.0.1"] == own
    assert merged["releases"]["5.0.0"]["requires"]
    assert merged["etag"] is None


def test_a_newer_record_is_left_alone(snapshot, tmp_path):
    store = PackageStore(tmp_path)
    newer = {**record("transformers", {"5.9.0": {"files": [], "requires": []}}), "fetched": "2027-01-01"}
    store.write("transformers", newer)
    seed_store(store, snapshot, snapshot.names())
    assert store.read("transformers") == newer


def test_seeded_minimums_do_not_pass_for_a_reading_of_the_wheel(snapshot, tmp_path):
    store = PackageStore(tmp_path)
    seed_store(store, snapshot, snapshot.names())
    seeded = store.read("transformers")
    assert seeded is not None
    assert transformers_table(seeded) == {}
    assert list(transformers_table(TRANSFORMERS)) == ["5.0.0"]


def test_marker_trees_are_written_with_their_grouping():
    tree = ["or", ["and", ["$os_name", "==", "nt"], ["$python_version", "<", "3.9"]], ["$extra", "==", "x"]]
    assert marker_text(tree) == '(os_name == "nt" and python_version < "3.9") or extra == "x"'

"""The shipped facts: complete, small, and refused when they are not what they should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from solve_world import release, shipped, world

from envdoctor.errors import Unavailable
from envdoctor.harvest.snapshot_compile import Compiler, compile_store
from envdoctor.matrix import load_matrix
from envdoctor.matrix.snapshot import load_snapshot, parse_snapshot

CORE = [
    *(
        "torch",
        "torchvision",
        "torchaudio",
        "triton",
        "transformers",
        "tokenizers",
        "safetensors",
        "accelerate",
    ),
    *(
        "huggingface-hub",
        "peft",
        "trl",
        "datasets",
        "bitsandbytes",
        "deepspeed",
        "flash-attn",
        "flash-attn-4",
    ),
    *("xformers", "vllm", "sglang", "torchao", "liger-kernel", "unsloth", "unsloth-zoo", "axolotl", "numpy"),
    *("llamafactory", "ms-swift", "lightning", "sentence-transformers", "optimum", "kernels"),
]


def test_every_release_of_the_store_is_in_the_snapshot(tmp_path: Path) -> None:
    releases = {
        f"{major}.{minor}": release("lib", f"{major}.{minor}", [], 0)
        for major in range(9)
        for minor in range(40)
    }
    record = {"schema": "envdoctor.package/1", "name": "lib", "fetched": "2026-01-01", "releases": releases}
    (tmp_path / "lib.json").write_text(json.dumps(record))
    data, problems = compile_store(tmp_path)
    package = parse_snapshot(data, "test").package("lib")
    assert package is not None
    assert set(package.versions) == set(releases)
    assert problems == []


def test_the_same_store_gives_the_same_bytes() -> None:
    packages = {"app": {"1": ["lib>=1; python_version > '3.9'"]}, "lib": {"1": [], "2": []}}
    first, second = Compiler(), Compiler()
    for compiler in (first, second):
        for name, versions in packages.items():
            compiler.add(
                {"name": name, "releases": {v: release(name, v, told, 0) for v, told in versions.items()}}
            )
    assert first.bytes("2026-01-01") == second.bytes("2026-01-01")


def test_what_cannot_be_read_is_noted_and_its_release_kept() -> None:
    compiler = Compiler()
    releases = {
        "1.0": release("lib", "1.0", ["not a requirement !"], 0),
        "2004d": release("lib", "2004d", [], 0),
    }
    compiler.add({"name": "lib", "releases": releases})
    assert compiler.problems == [
        "lib 2004d: not a PEP 440 version",
        "lib 1.0: requirement 'not a requirement !' cannot be read",
    ]
    package = parse_snapshot(compiler.bytes("2026-01-01"), "test").package("lib")
    assert package is not None
    assert package.versions == ["1.0"]


def test_both_syntaxes_of_requirements_are_read() -> None:
    snapshot = world(
        {"app": {"1": ["lib (==1.0)", "other[fast] >=2.0"]}, "lib": {"1.0": []}, "other": {"2.0": []}}
    )
    app = snapshot.package("app")
    assert app is not None
    assert [(r.name, r.extras) for r in app.requirements(0)] == [("lib", ()), ("other", ("fast",))]


def test_the_shipped_facts_cover_the_stack_and_are_small() -> None:
    snapshot, matrix = shipped()
    for name in CORE:
        package = snapshot.package(name)
        assert package is not None
        assert package.crawled, name
    assert Path(matrix.folder, "releases", "snapshot.bin").stat().st_size <= 4 << 20


@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"envdoctor-snapshot/1\n\0\0\0\5hello"])
def test_a_broken_file_is_refused_in_one_line(
    tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "snapshot.bin"
    path.write_bytes(data)
    monkeypatch.setenv("ENVDOCTOR_SNAPSHOT", str(path))
    load_snapshot.cache_clear()
    with pytest.raises(Unavailable, match=r"snapshot\.bin: the package facts cannot be read"):
        load_snapshot(tmp_path)
    load_snapshot.cache_clear()


@pytest.mark.parametrize("number", [b"3", b"5"])
def test_facts_that_another_release_of_envdoctor_wrote_stand_back(
    tmp_path: Path, number: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "envdoctor" / "releases" / "snapshot.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"envdoctor-snapshot/" + number + b"\n\0\0\0\5hello")
    load_snapshot.cache_clear()
    assert load_snapshot(load_matrix().folder).package("torch") is not None
    load_snapshot.cache_clear()


def test_newer_facts_win_over_older_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's update is used until the tool ships facts that are newer still."""
    monkeypatch.delenv("ENVDOCTOR_SNAPSHOT", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    shipped_folder, updated = tmp_path / "matrices", tmp_path / "data" / "envdoctor" / "releases"
    for folder, date in ((shipped_folder / "releases", "2026-02-01"), (updated, "2026-01-01")):
        folder.mkdir(parents=True)
        (folder / "snapshot.bin").write_bytes(Compiler().bytes(date))
    load_snapshot.cache_clear()
    assert load_snapshot(shipped_folder).date == "2026-02-01"
    (updated / "snapshot.bin").write_bytes(Compiler().bytes("2026-03-01"))
    load_snapshot.cache_clear()
    assert load_snapshot(shipped_folder).date == "2026-03-01"
    load_snapshot.cache_clear()

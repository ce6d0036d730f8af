"""The generated tables: made from a store, a release a line, saying what made them."""

from __future__ import annotations

import json

import pytest

from envdoctor.harvest.release_tables import (
    bitsandbytes_table,
    pin_table,
    plain_table,
    release_tables,
    size_table,
    torch_table,
)
from envdoctor.harvest.store import SCHEMA, PackageStore

X86 = {
    "build": "2.11.0+cu130",
    "cuda": "13.0",
    "arch_list": ["sm_75", "sm_80"],
    "cxx11_abi": True,
    "source": "wheel:torch-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl",
}


def release(requires: list[str] | None = None, deep: dict | None = None, *names: str) -> dict:
    files = [
        {"filename": name, "requires_python": ">=3.10", "yanked": False, "uploaded": "2026-03-23T01:02:03Z"}
        for name in names or ("x.tar.gz",)
    ]
    return {"files": files, "requires": requires, **({"deep": deep} if deep else {})}


def record(name: str, **releases: dict) -> dict:
    versions = {version.replace("_", "."): facts for version, facts in releases.items()}
    return {"schema": SCHEMA, "name": name, "fetched": "2026-11-21", "releases": versions}


TORCH = record(
    "torch",
    **{
        "2_11_0": release(
            [
                'nvidia-cudnn-cu13==9.19.0.56; platform_system == "Linux"',
                'nvidia-nccl-cu13==2.28.9; platform_system == "Linux"',
                'cuda-toolkit[cublas]==13.0.2; platform_system == "Linux"',
                'triton==3.6.0; platform_system == "Linux"',
                'nvidia-cudnn-cu12==1; sys_platform == "win32"',
            ],
            {"platforms": {"x86_64": X86, "aarch64": {"reason": "cut short", "source": "wheel:y"}}},
            "torch-2.11.0-cp310-cp310-manylinux_2_28_x86_64.whl",
            "torch-2.11.0-cp314-cp314t-manylinux_2_28_x86_64.whl",
            "torch-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl",
            "torch-2.11.0-cp313-none-macosx_11_0_arm64.whl",
        ),
        "2_10_0": release([], {"platforms": {"x86_64": {"reason": "no list"}}}),
        "1_0_0": release([]),
    },
)


def test_torch_tells_what_its_wheel_was_built_for_and_pins():
    table = torch_table(TORCH)
    assert list(table) == ["2.11.0"]
    facts = table["2.11.0"]
    assert (facts["cuda"], facts["arch_list"], facts["cxx11_abi"]) == ("13.0", ["sm_75", "sm_80"], True)
    assert (facts["cudnn"], facts["nccl"], facts["triton"]) == ("9.19.0.56", "2.28.9", "3.6.0")
    assert (facts["cuda_toolkit"], facts["glibc"], facts["date"]) == ("13.0.2", "2.28", "2026-03-23")
    assert facts["pythons"] == ["3.10", "3.12"]
    assert list(facts["platforms"]) == ["x86_64"]


@pytest.mark.parametrize(
    ("tag", "glibc"),
    [("manylinux1_x86_64", "2.5"), ("manylinux2014_aarch64", "2.17"), ("manylinux_2_34_x86_64", "2.34")],
)
def test_the_glibc_floor_is_in_the_tag(tag, glibc):
    deep = {"platforms": {"x86_64": {**X86, "source": f"wheel:torch-1-cp39-cp39-{tag}.whl"}}}
    assert torch_table(record("torch", **{"1_0": release([], deep)}))["1.0"]["glibc"] == glibc


def test_bitsandbytes_without_linux_wheels_has_no_line():
    libraries = {"cuda": ["126"], "cpu": True, "source": "wheel:x"}
    table = bitsandbytes_table(
        record(
            "bitsandbytes",
            **{
                "0_46": release([], {"platforms": {"aarch64": libraries}}),
                "0_1": release([], {"platforms": {}}),
            },
        )
    )
    assert list(table) == ["0.46"]
    assert table["0.46"]["cuda"] == ["126"]


def test_facts_that_could_not_be_read_have_no_line():
    assert plain_table(record("xformers", **{"1_0": release([], {"reason": "no Linux wheel"})})) == {}


def test_pins_are_those_on_linux_without_extras():
    lines = [
        "torch==2.14.0",
        'numpy; extra == "x"',
        'triton; sys_platform == "win32"',
        "requests",
        "xformers>=1",
    ]
    assert pin_table(record("vllm", **{"0_33": release(lines), "0_1": release(None)})) == {
        "0.33": {"torch": "==2.14.0", "xformers": ">=1"}
    }


def test_sizes_are_those_of_the_largest_wheel_for_a_kind_of_machine():
    wheels = {"cp310-cp310-manylinux_2_28_x86_64": 50 << 20, "cp312-cp312-manylinux_2_28_x86_64": 52 << 20}
    others = {
        "cp312-cp312-macosx_11_0_arm64": 9,
        "cp27-cp27mu-linux_x86_64": 99 << 20,
        "cp312-cp312-win32": 8,
    }
    files = [
        {"filename": f"big-1.0-{tag}.whl", "yanked": False, "size": size}
        for tag, size in {**wheels, **others}.items()
    ]
    source = [{"filename": "big-0.9.tar.gz", "yanked": False, "size": 7}]
    big = record("big", **{"1_0": {"files": files}, "0_9": {"files": source}})
    assert size_table(big) == {"0.9": {"source": 7}, "1.0": {"x86_64": 52 << 20, "macos": 9}}
    assert size_table(record("small", **{"0_9": {"files": source}})) == {}


def test_tables_tell_what_made_them(tmp_path):
    store = PackageStore(tmp_path / "store")
    store.folder.mkdir()
    store.write("torch", TORCH)
    tables = release_tables(store.records())
    assert list(tables) == ["torch"]
    text = tables["torch"]
    table = json.loads(text)
    assert (table["schema"], table["generated"]) == ("envdoctor.releases/1", "2026-11-21")
    assert "matrix update" in table["command"]
    assert text.count("\n") == len(table["releases"]) + 2


def test_releases_of_the_tables_in_force_are_kept(tmp_path):
    store = PackageStore(tmp_path / "store")
    store.folder.mkdir()
    store.write("torch", TORCH)
    former = {"releases": {"1.12.0": {"cuda": "10.2"}, "2.11.0": {"cuda": "wrong"}}}
    tables = release_tables(store.records(), lambda family: former if family == "torch" else {})
    releases = json.loads(tables["torch"])["releases"]
    assert releases["1.12.0"] == {"cuda": "10.2"}
    assert releases["2.11.0"]["cuda"] == "13.0"

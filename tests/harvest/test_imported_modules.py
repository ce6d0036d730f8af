"""`pin` on what pinned releases import: what their own files ask for is there, in releases that have it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_index import FakeIndex

from envdoctor.harvest.module_imports import imports_of
from envdoctor.harvest.outlines import outlined, parse_outline
from envdoctor.matrix import load_matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.python_source import parse_python

OF_OLD = "2021-06-02T03:04:05Z"


def newest(name: str) -> str:
    package = load_snapshot(load_matrix().folder).package(name)
    assert package is not None
    return package.versions[package.finals.bit_length() - 1]


@pytest.fixture
def einops(index: FakeIndex) -> None:
    index.add_wheel("einops", newest("einops"), members={"einops/__init__.py": b""})


@pytest.mark.parametrize(
    "text",
    [
        "import einops",
        "from einops import rearrange",
        "try:\n    import einops\nexcept ImportError:\n    raise ImportError('pip install einops') from None",
        "try:\n    import einops\nexcept ImportError:\n    print('no einops')\n    sys.exit(1)",
    ],
)
def test_what_a_looked_up_package_imports_and_does_not_require_is_pinned(
    index: FakeIndex,
    einops: None,
    pin,
    text: str,
) -> None:
    index.add_wheel("unheard-of", "1.0", members={"unheard_of/__init__.py": text.encode()})
    answer = pin("unheard-of")
    assert "einops" in answer.pins
    assert "unheard-of 1.0 imports einops (unheard_of, line" in " ".join(answer.told["notes"])


@pytest.mark.parametrize(
    "members",
    [
        {"unheard_of/__init__.py": b"try:\n    import einops\nexcept ImportError:\n    einops = None\n"},
        {"unheard_of/__init__.py": b"def run():\n    import einops\n"},
        {"unheard_of/__init__.py": b"if True:\n    import einops\n"},
        {
            "unheard_of/__init__.py": b"from typing import TYPE_CHECKING\n",
            "unheard_of/a.py": b"import einops",
        },
        {"unheard_of/__init__.py": b"import einops\n", "unheard_of/_vendor/einops/__init__.py": b""},
        {"unheard_of/__init__.py": b"import einops\n", "einops.py": b""},
        {"unheard_of/__init__.py": b"this is no Python\n"},
    ],
)
def test_what_it_can_do_without_or_carries_itself_is_not(
    index: FakeIndex,
    einops: None,
    pin,
    members: dict[str, bytes],
) -> None:
    index.add_wheel("unheard-of", "1.0", members=members)
    assert pin("unheard-of").pins == {"unheard-of": "1.0"}


def test_an_extra_of_its_own_tells_which_releases_serve(
    index: FakeIndex,
    einops: None,
    pin,
) -> None:
    requires = 'einops<0.7; extra == "all"'
    index.add_wheel("unheard-of", "1.0", requires, members={"unheard_of/__init__.py": b"import einops"})
    assert pin("unheard-of").pins["einops"].startswith("0.6")


def test_imports_are_followed_through_modules_and_packages(
    index: FakeIndex,
    einops: None,
    pin,
    tmp_path: Path,
) -> None:
    index.add_wheel(
        "unheard-of",
        "1.0",
        "unheard-base",
        members={
            "unheard_of/__init__.py": b"",
            "unheard_of/sub/__init__.py": b"from .deep import Thing\n",
            "unheard_of/sub/deep.py": b"from unheard_base import thing as Thing\n",
        },
    )
    index.add_wheel("unheard-base", "1.0", members={"unheard_base.py": b"import einops\nthing = 1\n"})
    code = tmp_path / "train.py"
    code.write_text("import unheard_of\n")
    assert "einops" not in pin("unheard-of", "--code", str(code)).pins
    code.write_text("from unheard_of.sub import Thing\n")
    assert "einops" in pin("unheard-of", "--code", str(code)).pins


def test_a_module_brought_when_it_is_asked_for_runs_then(
    index: FakeIndex,
    einops: None,
    pin,
    tmp_path: Path,
) -> None:
    typed = b"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .deep import Thing\n"
    lazy = typed + b"def __getattr__(name): ...\n"
    members = {"unheard_of/__init__.py": lazy, "unheard_of/deep.py": b"import einops\nclass Thing: ...\n"}
    index.add_wheel("unheard-of", "1.0", members=members)
    code = tmp_path / "train.py"
    code.write_text("from unheard_of import Thing\n")
    assert "einops" in pin("unheard-of", "--code", str(code)).pins


@pytest.mark.parametrize("text", ["import unheard_of.old\n", "from unheard_of import gone\n"])
def test_a_release_that_lost_what_code_imports_is_held_back(
    index: FakeIndex,
    pin,
    tmp_path: Path,
    text: str,
) -> None:
    for minor in range(7):
        there = {"unheard_of/__init__.py": b"gone = 1\n", "unheard_of/old.py": b""}
        members = there if minor < 4 else {"unheard_of/__init__.py": b"new = 1\n"}
        index.add_wheel("unheard-of", f"1.{minor}", members=members)
    code = tmp_path / "train.py"
    code.write_text(text)
    answer = pin("unheard-of", "--code", str(code))
    assert answer.pins["unheard-of"] == "1.3"
    assert "train.py, line 1 imports unheard_of." in " ".join(answer.told["notes"])


@pytest.mark.parametrize(("name", "version"), [("gone", "1.3"), ("part", "1.6")])
def test_names_that_a_module_takes_all_of_from_its_own_are_looked_for_there(
    index: FakeIndex, pin, tmp_path: Path, name: str, version: str
) -> None:
    for minor in range(7):
        top = b"from .parts import *\n" + (b"gone = 1\n" if minor < 4 else b"")
        members = {"unheard_of/__init__.py": top, "unheard_of/parts.py": b"part = 1\n"}
        index.add_wheel("unheard-of", f"1.{minor}", members=members)
    code = tmp_path / "train.py"
    code.write_text(f"from unheard_of import {name}\n")
    assert pin("unheard-of", "--code", str(code)).pins["unheard-of"] == version


def test_what_was_not_read_in_time_is_said(index: FakeIndex, pin, monkeypatch, tmp_path: Path) -> None:
    index.add_wheel("unheard-of", "1.0", members={"unheard_of/__init__.py": b""})
    monkeypatch.setattr("envdoctor.harvest.module_reader.PATIENCE_S", -1.0)
    code = tmp_path / "train.py"
    code.write_text("import unheard_of\n")
    told = " ".join(pin("unheard-of", "--code", str(code)).told["notes"])
    assert "not all was read of what is imported (unheard-of)" in told


def test_a_looked_up_package_gets_a_recorded_library_that_has_what_it_imports(index: FakeIndex, pin) -> None:
    members = {"unheard_of/__init__.py": b"from transformers import AdamW\n"}
    index.add_wheel("unheard-of", "1.0", "transformers", members=members, uploaded=OF_OLD)
    assert pin("unheard-of").pins["transformers"].startswith("4.")


def test_what_the_newest_of_its_day_lacked_as_well_is_not_missed(index: FakeIndex, pin) -> None:
    members = {"unheard_of/__init__.py": b"from transformers import AdamW\n"}
    index.add_wheel("unheard-of", "1.0", "transformers", members=members)
    assert int(pin("unheard-of").pins["transformers"].split(".")[0]) > 4


def test_what_is_looked_up_stays_where_code_holds_another_release_back(
    index: FakeIndex,
    pin,
    tmp_path: Path,
) -> None:
    index.add_wheel("unheard-of", "1.0", "transformers", "unheard-base")
    index.add_wheel("unheard-base", "1.0", "unheard-root")
    index.add_wheel("unheard-root", "1.0")
    code = tmp_path / "train.py"
    code.write_text("from transformers import AdamW\n")
    answer = pin("unheard-of", "--code", str(code))
    assert answer.pins["transformers"].startswith("4.")
    assert answer.pins["unheard-root"] == "1.0"
    assert answer.code == 0


def test_what_was_read_serves_again_without_a_network(index: FakeIndex, einops: None, pin) -> None:
    index.add_wheel("unheard-of", "1.0", members={"unheard_of/__init__.py": b"import einops"})
    first = pin("unheard-of")
    asked = len(index.requests)
    assert pin("unheard-of", "--offline").pins == first.pins
    assert len(index.requests) == asked


@pytest.mark.parametrize(
    ("text", "names", "open_"),
    [
        (b"import a.b\nimport c as d\nfrom e import f as g\n", {"a", "d", "g"}, False),
        (
            b"def f(): ...\nclass C: ...\nx, (y, *z) = 1, (2, 3)\nw: int = 1\n",
            {"f", "C", "x", "y", "z", "w"},
            False,
        ),
        (b"try:\n    import a\nexcept ImportError:\n    b = 1\n", {"a", "b"}, False),
        (b"with open('x') as h:\n    k = 1\nfor i in ():\n    j = 1\n", {"h", "k", "i", "j"}, False),
        (b"if (n := 1):\n    pass\n", set(), False),
        (b"from .a import *\n", {"*"}, True),
        (b"globals().update({})\n", set(), True),
        (b"def __getattr__(name): ...\n", {"__getattr__"}, True),
    ],
)
def test_the_names_of_a_module(text: bytes, names: set[str], open_: bool) -> None:
    told = imports_of("pkg.mod", False, text)
    assert told is not None
    assert (set(told.names), told.open_) == (names, open_)


@pytest.mark.parametrize(
    "text",
    [
        "KIND = np.float",
        "class Model:\n    kind = [np.float]",
        "def run(kind=np.float): ...",
        "@np.float\ndef run(): ...",
        "class Model(np.float): ...",
    ],
)
def test_a_name_that_a_module_asks_for_as_it_runs_holds_its_library_back(
    index: FakeIndex, pin, text: str
) -> None:
    members = {"unheard_of/__init__.py": f"import numpy as np\n{text}\n".encode()}
    index.add_wheel("unheard-of", "1.0", "numpy", members=members, uploaded=OF_OLD)
    answer = pin("unheard-of")
    assert [int(part) for part in answer.pins["numpy"].split(".")] < [1, 24]
    assert "unheard-of 1.0 (unheard_of, line" in " ".join(answer.told["notes"])


@pytest.mark.parametrize(
    "text",
    [
        "def run():\n    return np.float",
        "KIND = np.float if hasattr(np, 'float') else float",
        "if hasattr(np, 'float'):\n    KIND = np.float",
        "try:\n    KIND = np.float\nexcept AttributeError:\n    KIND = float",
        "KIND = lambda: np.float",
        "def run():\n    kind: np.float",
    ],
)
def test_a_name_that_is_asked_for_later_or_with_care_does_not(index: FakeIndex, pin, text: str) -> None:
    members = {"unheard_of/__init__.py": f"import numpy as np\n{text}\n".encode()}
    index.add_wheel("unheard-of", "1.0", "numpy", members=members, uploaded=OF_OLD)
    assert int(pin("unheard-of").pins["numpy"].split(".")[0]) > 1


def test_a_module_that_the_newest_release_lost_is_brought_by_an_older_one(
    index: FakeIndex, pin, tmp_path: Path
) -> None:
    package = load_snapshot(load_matrix().folder).package("setuptools")
    assert package is not None
    finals = [v for place, v in enumerate(package.versions) if package.finals >> place & 1]
    for version in finals[-30:]:
        lost = int(version.split(".")[0]) >= 82
        files = {"setuptools/__init__.py": b""} | ({} if lost else {"pkg_resources/__init__.py": b"x = 1"})
        index.add_wheel("setuptools", version, members=files)
    index.add_wheel("other-name", "1.0", members={"clap/__init__.py": b"from pkg_resources import x\n"})
    code = tmp_path / "train.py"
    code.write_text("import clap\n")
    for asked in ([], ["setuptools"]):
        answer = pin("other-name", *asked, "--code", str(code))
        assert int(answer.pins["setuptools"].split(".")[0]) < 82
        assert "setuptools<82" in " ".join(answer.told["notes"])


@pytest.mark.parametrize(
    "text",
    [
        "NAMES = [f[:-3] for f in listdir('.') if f.endswith('_model.py')]\n"
        "MODELS = [importlib.import_module(f'unheard_of.models.{name}') for name in NAMES]\n",
        "for f in listdir('.'):\n    if f.endswith('_model.py'):\n"
        "        import_module('unheard_of.models.' + f[:-3])\n",
    ],
)
@pytest.mark.parametrize(("file", "is_met"), [("a_model.py", True), ("other.py", False)])
def test_what_a_registry_imports_by_the_names_of_files_runs_too(
    index: FakeIndex, einops: None, pin, text: str, file: str, is_met: bool
) -> None:
    members = {
        "unheard_of/__init__.py": b"from .models import *\n",
        "unheard_of/models/__init__.py": f"import importlib\n{text}".encode(),
        f"unheard_of/models/{file}": b"import einops\n",
    }
    index.add_wheel("unheard-of", "1.0", members=members)
    assert ("einops" in pin("unheard-of").pins) is is_met


def test_a_module_called_as_what_it_imports_is_no_copy_of_it(
    index: FakeIndex, einops: None, pin, tmp_path: Path
) -> None:
    members = {"unheard_of/__init__.py": b"", "unheard_of/einops.py": b"import einops\n"}
    index.add_wheel("unheard-of", "1.0", members=members)
    code = tmp_path / "train.py"
    code.write_text("from unheard_of.einops import x\n")
    assert "einops" in pin("unheard-of", "--code", str(code)).pins


def test_what_was_opened_for_one_answer_is_read_on_for_the_next(
    index: FakeIndex, einops: None, pin, tmp_path: Path
) -> None:
    padding = {f"unheard_of/data{number}.bin": os.urandom(1 << 20) for number in range(3)}
    members = {"unheard_of/__init__.py": b"from . import a\nimport einops\n", "unheard_of/a.py": b""}
    index.add_wheel("unheard-of", "1.0", members={**members, **padding})
    code = tmp_path / "train.py"
    code.write_text("import unheard_of\nfrom transformers import AdamW\n")
    answer = pin("unheard-of", "transformers", "--code", str(code))
    assert "einops" in answer.pins
    assert answer.pins["transformers"].startswith("4.")


def test_the_bodies_of_functions_are_no_part_of_a_modules_outline() -> None:
    source = (
        b'def f(a=(1,\n  2)) -> int:  # told\n    """Text.\n\n    import x\n    """\n    return a\n\n'
        b"class C:\n\t@d\n\tasync def m(self):\n\t\tawait q\n\n\tw = 1\ndef g(): return 1\n"
        b'def h():\n    s = """\nimport y\n"""\nz = 2\n'
    )
    told = outlined(source)
    assert b"return a" not in told
    assert b"await q" not in told
    assert told.count(b"\n") == source.count(b"\n")
    whole, outline = parse_python(source), parse_outline(source)
    assert [one.lineno for one in whole.body] == [one.lineno for one in outline.body]


@pytest.mark.parametrize("text", [b"def f():\nx = 1\n", b"def f(\n", b"class A:\n  def f(self):\n x\n"])
def test_what_is_no_python_has_no_outline(text: bytes) -> None:
    with pytest.raises(SyntaxError):
        parse_outline(text)


def test_what_is_asked_for_and_not_on_record_is_read_for_what_it_imports(index: FakeIndex, pin) -> None:
    version = newest("rouge-score")
    index.add_wheel("rouge-score", version, members={"rouge_score/__init__.py": b"import einops\n"})
    index.add_wheel("einops", newest("einops"), members={"einops/__init__.py": b""})
    answer = pin(f"rouge-score=={version}")
    assert f"rouge-score {version} imports einops (rouge_score, line 1)" in " ".join(answer.told["notes"])
    assert "einops" in answer.pins


@pytest.mark.parametrize("copy", ["unheard_of/own/einops.py", "unheard_of/own/einops.cpython-311-x86_64.so"])
def test_what_a_release_carries_itself_is_not_brought(index: FakeIndex, einops: None, pin, copy: str) -> None:
    members = {"unheard_of/__init__.py": b"import einops\n", copy: b""}
    index.add_wheel("unheard-of", "1.0", members=members)
    assert "einops" not in pin("unheard-of").pins


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("from collections import Mapping", "imports collections.Mapping, which Python 3.11 does not have"),
        ("import asyncore\nimport imp", ""),
        ("from hashlib import sha256", ""),
        ("from typing import override", "Python 3.12 has it"),
        ("import sys\nif sys.version_info < (3, 10):\n    from collections import Mapping", ""),
        ("try:\n    from collections import Mapping\nexcept ImportError:\n    pass", ""),
    ],
)
def test_names_that_this_python_has_not_are_told(index: FakeIndex, pin, text: str, told: str) -> None:
    index.add_wheel("unheard-of", "1.0", members={"unheard_of/__init__.py": text.encode()})
    answer = pin("unheard-of", "--python-version", "3.11")
    notes = " ".join(answer.told["notes"])
    assert told in notes
    assert ("does not have" in notes) is bool(told)
    assert answer.pins == {"unheard-of": "1.0"}


def test_a_library_goes_back_where_what_it_imports_excludes_what_code_imports(
    index: FakeIndex, pin, tmp_path: Path
) -> None:
    for version, text in (("1.0", b""), ("2.0", b"from unheard_base import new\n")):
        index.add_wheel("unheard-of", version, "unheard-base", members={"unheard_of/__init__.py": text})
    for version, text in (("1.0", b"old = 1\n"), ("2.0", b"new = 1\n")):
        index.add_wheel("unheard-base", version, members={"unheard_base/__init__.py": text})
    code = tmp_path / "train.py"
    code.write_text("import unheard_of\nfrom unheard_base import old\n")
    answer = pin("unheard-of", "unheard-base", "--code", str(code))
    assert (answer.pins["unheard-of"], answer.pins["unheard-base"]) == ("1.0", "1.0")

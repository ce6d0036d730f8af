"""`pin` on imports that hang on a question, on modules brought when asked for, and on older importers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from fake_index import FakeIndex

from envdoctor.harvest.generated_files import made_by
from envdoctor.harvest.import_conditions import conditions_of
from envdoctor.matrix import load_matrix
from envdoctor.matrix.snapshot import load_snapshot

OF_OLD = "2021-06-02T03:04:05Z"


def newest(name: str) -> str:
    package = load_snapshot(load_matrix().folder).package(name)
    assert package is not None
    return package.versions[package.finals.bit_length() - 1]


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("sys.version_info >= (3, 11)", ('python_version >= "3.11"', 'python_version < "3.11"')),
        ("sys.version_info[:2] == (3, 8)", ('python_version == "3.8"', 'python_version != "3.8"')),
        ("sys.version_info > (3, 8)", ("", "")),
        ("sys.version_info < (3, 9, 2)", ('python_full_version < "3.9.2"', 'python_full_version >= "3.9.2"')),
        ("sys.platform.startswith('win')", ('sys_platform == "win32"', 'sys_platform != "win32"')),
        ("not os.name == 'nt'", ('os_name != "nt"', 'os_name == "nt"')),
        ("is_torch_available()", ("torch", "")),
        ("not (is_torch_available() and is_av_available())", ("", "torch and av")),
        ("is_torch_version('>=', '2.5')", ("torch>=2.5", "!torch>=2.5")),
        ("is_torch_greater_or_equal('2.5')", ("torch>=2.5", "!torch>=2.5")),
        ("version.parse(torch.__version__) < version.parse('2.1')", ("torch<2.1", "!torch<2.1")),
        ("is_torch_available() or USED", ("", "")),
        ("is_torch_available() and USED", ("", "")),
        ("TYPE_CHECKING", ("", 'python_version >= "3"')),
        ("DEBUG", ("", "")),
    ],
)
def test_what_a_module_asks_is_a_condition(test: str, told: tuple[str, str]) -> None:
    assert conditions_of(ast.parse(test, mode="eval").body) == told


@pytest.mark.parametrize(
    ("asked", "is_met"),
    [
        ("sys.version_info >= (3, 11)", True),
        ("sys.version_info < (3, 11)", False),
        ("sys.platform == 'win32'", False),
        ("is_packaging_available()", True),
        ("is_scipy_available()", False),
        ("is_packaging_version('>=', '20')", True),
        ("is_packaging_version('<', '20')", False),
        ("not is_packaging_version('<', '20')", True),
        ("not is_scipy_version('<', '1')", False),
    ],
)
def test_an_import_behind_a_question_is_met_where_the_target_answers_it(
    index: FakeIndex, pin, asked: str, is_met: bool
) -> None:
    index.add_wheel("einops", newest("einops"), members={"einops/__init__.py": b""})
    text = f"if {asked}:\n    import einops\nelse:\n    import json\n".encode()
    index.add_wheel("unheard-of", "1.0", "packaging", members={"unheard_of/__init__.py": text})
    assert ("einops" in pin("unheard-of").pins) is is_met


def _lazy(wanted: str) -> bytes:
    return f"""from typing import TYPE_CHECKING
if TYPE_CHECKING:
    try:
        if not is_{wanted}_available():
            raise OptionalDependencyNotAvailable()
    except OptionalDependencyNotAvailable:
        from .dummies import Thing
    else:
        from .deep import Thing, Other, Further, More
else:
    import sys
    sys.modules[__name__] = _LazyModule(__name__)
""".encode()


@pytest.mark.parametrize(("wanted", "is_met"), [("packaging", True), ("scipy", False)])
def test_what_is_brought_where_another_is_there_runs_where_it_is(
    index: FakeIndex, pin, tmp_path: Path, wanted: str, is_met: bool
) -> None:
    index.add_wheel("einops", newest("einops"), members={"einops/__init__.py": b""})
    deep = b"import einops\nclass Thing: ...\n"
    members = {"unheard_of/__init__.py": _lazy(wanted), "unheard_of/deep.py": deep}
    index.add_wheel("unheard-of", "1.0", "packaging", members=members)
    code = tmp_path / "train.py"
    code.write_text("from unheard_of import Thing\n")
    assert ("einops" in pin("unheard-of", "--code", str(code)).pins) is is_met


def test_modules_that_a_library_on_record_brings_when_asked_are_followed(
    index: FakeIndex, pin, tmp_path: Path
) -> None:
    for version in ("1.18.0", newest("peft")):
        members = {
            "peft/__init__.py": _lazy("packaging"),
            "peft/deep.py": b"from .deeper import Thing\n",
            "peft/deeper.py": b"import einops\nclass Thing: ...\n",
        }
        index.add_wheel("peft", version, members=members)
    index.add_wheel("einops", newest("einops"), members={"einops/__init__.py": b""})
    code = tmp_path / "train.py"
    code.write_text("import peft\n")
    assert "einops" not in pin("peft", "--code", str(code)).pins
    code.write_text("from peft import Thing\n")
    answer = pin("peft", "--code", str(code))
    assert "einops" in answer.pins
    assert "imports einops (peft.deeper, line 1)" in " ".join(answer.told["notes"])


def test_an_older_importer_is_taken_where_what_it_imports_cannot_be_had(index: FakeIndex, pin) -> None:
    for minor in range(6):
        text = b"from numpy import float\n" if minor > 3 else b"import numpy\n"
        index.add_wheel(
            "unheard-of", f"1.{minor}", "numpy", members={"unheard_of/__init__.py": text}, uploaded=OF_OLD
        )
    answer = pin("unheard-of", "numpy>=2")
    assert answer.pins["unheard-of"] == "1.3"
    assert "unheard-of<1.4: unheard-of 1.5 imports numpy.float" in " ".join(answer.told["notes"])


def test_a_newer_library_is_taken_where_the_one_chosen_lacks_what_is_imported(
    index: FakeIndex, pin, tmp_path: Path
) -> None:
    for minor in range(6):
        text = b"thing = 1\n" if minor > 3 else b"other = 1\n"
        index.add_wheel("unheard-base", f"1.{minor}", members={"unheard_base.py": text})
    text = b"from unheard_base import thing\n"
    index.add_wheel("unheard-of", "1.0", "unheard-base", members={"unheard_of.py": text})
    index.add_wheel("unheard-user", "2.0", "unheard-base<1.3", members={"unheard_user.py": b""})
    index.add_wheel("unheard-user", "1.0", "unheard-base", members={"unheard_user.py": b""})
    code = tmp_path / "train.py"
    code.write_text("import unheard_of\n")
    answer = pin("unheard-of", "unheard-user", "--code", str(code))
    assert (answer.pins["unheard-base"], answer.pins["unheard-user"]) == ("1.5", "1.0")


@pytest.mark.parametrize(
    ("body", "is_met"),
    [
        ("import einops\n    return getattr(einops, name)", True),
        ("if name == 'other':\n        import einops\n    raise AttributeError(name)", False),
        ("if name == 'Thing':\n        from einops import Thing\n        return Thing", True),
        ("if name == 'Other':\n        from einops import Other\n        return Other", False),
        ("try:\n        import einops\n    except ImportError:\n        return None", False),
    ],
)
def test_what_a_module_imports_when_a_name_is_asked_for_runs_then(
    index: FakeIndex, pin, tmp_path: Path, body: str, is_met: bool
) -> None:
    index.add_wheel("einops", newest("einops"), members={"einops/__init__.py": b""})
    text = f"HERE = 1\n\n\ndef __getattr__(name):\n    {body}\n".encode()
    index.add_wheel("unheard-of", "1.0", members={"unheard_of/__init__.py": text})
    code = tmp_path / "train.py"
    code.write_text("from unheard_of import HERE\n")
    assert "einops" not in pin("unheard-of", "--code", str(code)).pins
    code.write_text("from unheard_of import Thing\n")
    assert ("einops" in pin("unheard-of", "--code", str(code)).pins) is is_met


@pytest.mark.parametrize(
    ("head", "held"),
    [
        ("# Generated from PS.g4 by ANTLR 4.7.2\nimport antlr4\n", "<4.10"),
        ("# Generated from PS.g4 by ANTLR 4.13.0\nimport antlr4\n", ""),
        ("# by ANTLR 4.7.2\nimport antlr4\n", ""),
    ],
)
def test_a_generated_module_gets_a_runtime_that_takes_it(index: FakeIndex, pin, head: str, held: str) -> None:
    for version in ("4.7.2", "4.9.3", "4.10", "4.13.2"):
        index.add_wheel("antlr4-python3-runtime", version, members={"antlr4/__init__.py": b""})
    ways = b"try:\n    from gen.parser import x\nexcept Exception:\n    from .gen.parser import x\n"
    members = {
        "unheard_of.py": ways,
        "gen/__init__.py": b"",
        "gen/parser.py": f"{head}x = 1\n".encode(),
    }
    index.add_wheel("unheard-of", "1.0", "antlr4-python3-runtime", members=members)
    answer = pin("unheard-of", "--allow-source")
    assert answer.pins["antlr4-python3-runtime"] == ("4.9.3" if held else "4.13.2")
    assert (f"antlr4-python3-runtime{held}: unheard-of 1.0 has" in " ".join(answer.told["notes"])) is bool(
        held
    )


def validating(major: int, minor: int) -> str:
    return (
        "# Generated by the protocol buffer compiler.  DO NOT EDIT!\n"
        "from google.protobuf import runtime_version as _runtime_version\n"
        "_runtime_version.ValidateProtobufRuntimeVersion(\n"
        f"    _runtime_version.Domain.PUBLIC,\n    {major},\n    {minor},\n    0,\n    '',\n    'a.proto')\n"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (validating(5, 29), [("protobuf", "5.29.0")]),
        (
            "# Generated by the protocol buffer compiler.\nX = _descriptor.FieldDescriptor(1)",
            [("protobuf", "3.18")],
        ),
        ("# Generated by the protocol buffer compiler.\nX = pool.AddSerializedFile(b'')", []),
        ("# Generated by gRPC\nGRPC_GENERATED_VERSION = '1.66.2'\n", [("grpc", "1.66.2")]),
        ("X = 1\n", []),
    ],
)
def test_generated_modules_tell_their_generators(text: str, told: list[tuple[str, str]]) -> None:
    assert list(made_by(text.encode())) == told

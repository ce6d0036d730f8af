"""What releases offer, read from their syntax: names through star imports, members through base classes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envdoctor.harvest import interfaces, module_syntax
from envdoctor.harvest.interface_reader import chosen_releases, digest_of, narrowed, outline_of, read_files
from envdoctor.harvest.interface_sources import Library, Step
from envdoctor.harvest.interface_tables import encode, inheriting
from envdoctor.harvest.interfaces import Interface, scan_interface
from envdoctor.matrix.interface_records import Record, pack_owners
from envdoctor.matrix.late_tables import pack_tables

OLD = {
    "gizmo/__init__.py": b"from .core import *\nfrom .core import _hidden\nVERSION = '1'\n",
    "gizmo/core.py": b"__all__ = ['spin', 'Wheel']\ndef spin(speed, count, *, mode=None): ...\n"
    b"class Wheel(Base): ...\n"
    b"class Base:\n    def turn(self, angle): self.angle = angle\n    next = turn\ndef _hidden(): ...\n",
    "gizmo/tests/test_core.py": b"def test(): ...\n",
    "gizmo/legacy.py": b"from numpy.testing.nosetester import import_nose\ntry:\n    import other.thing\n"
    b"except ImportError: pass\n",
}
NEW = {
    "gizmo/__init__.py": b"from .core import *\nVERSION = '2'\n",
    "gizmo/core.py": b"__all__ = ['spin', 'Wheel']\ndef spin(speed, *, count, mode): ...\nclass Wheel:\n"
    b"    @property\n    def angle(self): return 1\n    def turn(self, degrees): ...\n",
}


def scanned(files: dict[str, bytes]) -> Interface:
    return scan_interface(files, "gizmo")


def test_names_are_followed_through_star_imports() -> None:
    assert {"gizmo:spin", "gizmo:Wheel", "gizmo:VERSION", "gizmo:_hidden"} <= scanned(OLD).names
    assert "gizmo:Base" not in scanned(OLD).names


def test_members_are_inherited_and_what_methods_set_is_a_member() -> None:
    assert {"Wheel:turn", "Wheel:angle", "Wheel:next"} <= scanned(OLD).members
    assert "Wheel:=angle" in scanned(NEW).members


def test_a_base_of_another_package_leaves_a_class_open() -> None:
    files = {"gizmo/__init__.py": b"class Mine(Trainer): ...\nclass Own(object): ...\nclass Sub(Mine): ...\n"}
    assert scanned(files).members == {"Mine:**", "Sub:**"}


def test_a_class_that_stands_in_for_a_missing_package_tells_nothing() -> None:
    files = {"gizmo/utils/dummy_pt_objects.py": b"class Wheel:\n    def __init__(self, *a, **k): ...\n"}
    told = scanned(files)
    assert (told.members, told.keywords, told.names) == (frozenset(), frozenset(), frozenset())


def test_what_a_function_takes_out_of_its_kwargs_by_name_is_a_keyword() -> None:
    files = {
        "gizmo/__init__.py": b"def load(name, **kw):\n    fast = kw.pop('fast', False)\n    other.pop('x')\n"
    }
    assert {"load:fast", "load:**"} <= scanned(files).keywords
    assert "load:x" not in scanned(files).keywords


def test_a_reader_is_told_by_what_it_does() -> None:
    assert digest_of(interfaces) == digest_of(interfaces) != digest_of(module_syntax)


def test_signatures_tell_positions_and_what_is_needed() -> None:
    assert {"spin:~2", "spin:!speed", "spin:!count", "spin:mode", "Base.turn:~1"} <= scanned(OLD).keywords
    assert {"spin:~1", "spin:!count", "spin:!mode"} <= scanned(NEW).keywords


def test_guarded_imports_and_tests_are_left_out() -> None:
    assert scanned(OLD).imports == {"numpy.testing.nosetester:import_nose"}
    assert "gizmo.tests.test_core" not in scanned(OLD).modules


def test_a_decorator_may_change_a_signature() -> None:
    files = {"gizmo/__init__.py": b"@deprecate_positional\ndef spin(*, speed): ...\n"}
    assert scanned(files).keywords == {"spin:speed"}


def test_a_decorator_that_renames_still_takes_the_former_name() -> None:
    files = {"gizmo/__init__.py": b"@deprecate_kwarg('rate', new_name='speed')\ndef spin(speed): ...\n"}
    assert scanned(files).keywords == {"spin:rate", "spin:speed", "spin:~1", "spin:!speed"}


@pytest.mark.parametrize(
    ("decorator", "former"),
    [
        ("deprecate_kwarg(old_name='rate', new_name='pace', removed_version='0.26')", {"rate"}),
        ("deprecate_kwarg(old_arg_name='rate', new_arg_name='speed')", {"rate"}),
        ("deprecate_kwarg({'rate': 'speed'}, additional_message='So it is.')", {"rate"}),
        ("deprecated_arguments(arguments={'speed'}, custom_message='It goes away.')", set()),
        ("renamed(rate='speed')", {"rate"}),
        ("deprecate(is_old=lambda: 'rate')", None),
    ],
)
def test_a_decorator_s_own_words_are_no_former_names(decorator: str, former: set[str] | None) -> None:
    told = scanned({"gizmo/__init__.py": f"@{decorator}\ndef spin(speed): ...\n".encode()}).keywords
    plain = {"spin:speed"} if former is None else {"spin:speed", "spin:~1"}
    assert told - {"spin:!speed"} == plain | {f"spin:{name}" for name in former or ()}


def test_a_stub_tells_what_its_file_makes_when_it_is_loaded() -> None:
    files = {
        "gizmo/button.py": b"class Block: ...\nclass Button(Block):\n    EVENTS = [click]\n",
        "gizmo/button.pyi": b"class Button(Block):\n    def click(self, fn, js=None): ...\n",
        "gizmo/compiled.pyi": b"class Core:\n    def run(self): ...\n",
    }
    told = scanned(files)
    assert {"Button:click", "Button:EVENTS", "Core:run"} <= told.members
    assert {"Button.click:js", "Button.click:~2"} <= told.keywords
    assert "gizmo.compiled:Core" in told.names


def test_a_class_is_made_as_its_base_is_unless_it_says_otherwise() -> None:
    files = {
        "gizmo/__init__.py": b"class Base:\n    speed: int = 1\nclass Sub(Base):\n    rate: int = 2\n"
        b"class Own(Base):\n    def __init__(self, x): ...\nclass Far(Other):\n    near: int = 0\n"
    }
    told = scanned(files)
    assert {
        "Sub.__init__:speed",
        "Sub.__init__:rate",
        "Far.__init__:near",
        "Far.__init__:**",
    } <= told.keywords
    assert not {"Own.__init__:speed", "Sub.__init__:**"} & told.keywords
    assert told.bases == {"Sub:Base", "Own:Base"}


def test_what_is_imported_for_types_alone_is_no_name_of_a_module_that_brings_none_when_asked() -> None:
    source = b"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gizmo.core import spin\n"
    lazy = source + b"else:\n    def __getattr__(name): ...\n"
    assert "gizmo.plain:spin" not in scanned({"gizmo/plain.py": source}).names
    assert "gizmo.lazy:spin" in scanned({"gizmo/lazy.py": lazy}).names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("_OLD = ['Angle']\n{}    if name in _OLD:\n        return 1\n", {"Angle"}),
        ("_OLD = {{'Angle': 1}}\n{}    return _OLD[name]\n", {"Angle"}),
        ("_OLD = ['Angle']\n{}    if name in _OLD:\n        raise ValueError\n", set()),
        ("{}    return spun(name)\n", set()),
        ("_OLD = {{'Angle': 1}}\n{}    if name in _OLD:\n        warn(name)\n    raise ValueError\n", set()),
        ("{}    if name in globals():\n        return globals()[name]\n    raise ValueError\n", set()),
        ("_OLD: dict = {{**{{f'{{a}}': 1 for a in ['Angle']}}}}\n{}    try:\n        old = _OLD[name]\n"
         "    except KeyError:\n        raise AttributeError from None\n    return old\n", {"Angle"}),
        ("_ROWS = [('Angle', ''), ('Arc', '')]\n_OLD = {{}}\n_OLD.update({{n: x for n, x in _ROWS}})\n"
         "{}    return _OLD[name]\n", {"Angle", "Arc"}),
        ("_OLD = {{'Angle': 1}}\n{}    def gone():\n        raise ValueError\n    if name in _OLD:\n"
         "        return gone\n    raise AttributeError\n", set()),
        ("_OLD = {{'Angle': 1}}\n{}    if (old := _OLD.get(name)) is None:\n        raise ValueError\n"
         "    globals()[name] = old\n    return globals()[name]\n", {"Angle"}),
        ("def f(): ...\nfor one in core:\n    globals()[one] = 1\n", {"f", "**"}),
        ("here = sys.modules[__name__]\nfor one in Kind:\n    setattr(here, one.name, one)\n", {"**"}),
        ("from ctypes import *\n", {"**"}),
    ],
)  # fmt: skip
def test_names_that_are_served_when_asked_for_stand_and_those_that_only_a_run_tells_leave_a_module_open(
    source: str, names: set[str]
) -> None:
    made = source.format("def __getattr__(name):\n")
    told = {name.partition(":")[2] for name in scanned({"gizmo/core.py": made.encode()}).names}
    assert told >= names
    assert ("**" in told) == ("**" in names)
    assert ("__getattr__" in told) == ("*" in told)
    assert ("Angle" in told) == ("Angle" in names)


_MAKER = b"""
OLD = {f"gizmo.core:{one}": 1 for one in ("Angle", "Arc")} | {"gizmo.other:Ray": 1}
GONE = {"gizmo.core:Line"}

def brings(module):
    def bring(name):
        path = f"{module}:{name}"
        if path in OLD:
            return OLD[path]
        if path in GONE:
            raise ImportError(path)
        raise AttributeError(name)
    return bring
"""


@pytest.mark.parametrize(
    ("getter", "later"),
    [
        (b"from gizmo.old import brings\n__getattr__ = brings(__name__)\n", {"Angle", "Arc"}),
        (b"from gizmo.old import brings\n_rest = brings(__name__)\n_NEW = {'Disc': 1}\n"
         b"def __getattr__(name):\n    new = _NEW.get(name)\n    if new is None:\n"
         b"        return _rest(name)\n    return new\n", {"Angle", "Arc", "Disc"}),
        (b"def __getattr__(name):\n    raise AttributeError(name)\n", set()),
        (b"import o\ndef __getattr__(name):\n    return getattr(o, name)\n", {"Angle", "Arc", "Line", "Ray"}),
    ],
)  # fmt: skip
def test_a_name_goes_on_only_where_what_is_asked_for_names_may_bring_it(
    getter: bytes, later: set[str]
) -> None:
    old = {"gizmo/core.py": b"class Angle: ...\nclass Arc: ...\nclass Line: ...\nclass Ray: ...\n"}
    new = {"gizmo/core.py": getter, "gizmo/old.py": _MAKER}
    told = encode({"1.0": scanned(old), "2.0": scanned(new)}, "gizmo.core")
    names, served = told["names"]["gizmo.core"], told["served"].get("gizmo.core", {})
    asked = ("Angle", "Arc", "Line", "Ray", "Disc")
    assert {name for name in asked if name in names and names[name][-1][1] == 1} == later
    assert set(served) == (
        {"Angle", "Arc"} if b"_getattr__ = brings" in getter or b"_NEW" in getter else set()
    )


def test_a_decorator_tells_a_former_name_by_what_it_is_given_or_by_how_that_is_called() -> None:
    source = b"@deprecated_kwargs(speed='rate')\ndef spin(rate): ...\n"
    assert scanned({"gizmo/core.py": source}).keywords == {"spin:speed", "spin:rate", "spin:~1"}


def test_a_class_into_which_others_put_members_is_open() -> None:
    source = (
        b"@inherit_names(['hour'], Base)\nclass Wheel: ...\nclass Own: ...\n@dataclass(frozen=True)\n"
        b"class Plain: ...\nfor one in Base.methods:\n    setattr(Own, one, 1)\n"
    )
    assert scanned({"gizmo/core.py": source}).members == {"Wheel:**", "Own:**"}


def test_a_name_that_moved_to_another_package_may_still_be_imported_from_here() -> None:
    own, moved = b"def spin(): ...\nclass Wheel: ...\n", b"from fabric.core import spin, other\n"
    record = encode({"1.0": scanned({"gizmo/core.py": own}), "2.0": scanned({"gizmo/core.py": moved})})
    assert record["names"]["gizmo.core"] == {"Wheel": [[0, 0]]}


def test_what_ends_at_one_class_and_goes_on_at_another_is_told() -> None:
    hub = b"class Hub:\n    def turn_it(self): ...\nclass Wheel:\n    def stop(self): ...\n"
    both, less = hub + b"    def turn_it(self): ...\n", hub
    record = encode({"1.0": scanned({"gizmo/core.py": both}), "2.0": scanned({"gizmo/core.py": less})})
    assert record["members"] == {"Wheel": {"turn_it": [[0, 0]]}}
    assert record["stays"] == {"": {"turn_it": [[0, 1]]}}


def test_what_a_library_gives_the_methods_that_it_calls_on_itself_and_asks_of_its_surroundings() -> None:
    files = {
        "gizmo/__init__.py": b"import os\nclass Wheel:\n    def go(self):\n"
        b"        self.turn(1, os.environ.get('GIZMO_RATE'), speed=2)\n        other.turn(rate=1)\n"
    }
    told = scanned(files)
    assert told.passed == {"turn:~2", "turn:speed"}
    assert told.variables == {"GIZMO_RATE"}


def test_the_names_of_a_file_are_told_by_what_stands_at_its_top() -> None:
    source = (
        b"from .core import (\n    spin,\n)\nlogger = 1\nLIMIT: int = 3\nif f:\n    from .core import turn\n"
        b"class Wheel(Base):\n    angle = 1\n    def turn(self): ...\n@cached\ndef go(): ...\n"
    )
    told = scan_interface({"gizmo/models.py": outline_of(source)}, "gizmo")
    names = {name.partition(":")[2] for name in told.names}
    assert names == {"spin", "LIMIT", "turn", "Wheel", "go"}
    assert outline_of(b"if f(:\n    x\ndef go(): ...\n") == b"go = 0\n"


def test_what_all_releases_share_is_left_out() -> None:
    record = encode({"1.0": scanned(OLD), "2.0": scanned(NEW)})
    assert record["modules"] == {"gizmo.legacy": [[0, 0]]}
    assert record["names"]["gizmo"] == {"_hidden": [[0, 0]]}
    assert record["members"]["Wheel"]["=angle"] == [[1, 1]]
    assert "speed" not in record["keywords"]["spin"]


def test_the_same_releases_give_the_same_bytes() -> None:
    def once() -> bytes:
        return pack_tables(encode({"1.0": scanned(OLD), "2.0": scanned(NEW)}))

    assert once() == once()
    assert pack_owners({"b": ["x", "y"], "a": ["x"]}) == pack_owners({"a": ["x"], "b": ["y", "x"]})


@pytest.mark.parametrize(
    ("step", "chosen"),
    [
        (Step.ALL, ["0.9", "1.0.0", "1.0.1", "1.0.2", "1.1.0", "2.0"]),
        (Step.ENDS, ["0.9", "1.0.0", "1.0.2", "1.1.0", "2.0"]),
        (Step.PATCHES, ["0.9", "1.0.0", "1.0.1", "1.0.2", "1.1.0", "2.0"]),
        (Step.MINORS, ["0.9", "1.0.0", "1.1.0", "2.0"]),
    ],
)
def test_releases_are_chosen_by_steps(step: Step, chosen: list[str]) -> None:
    told = ["2.0", "1.0.1", "1.0.0", "1.1.0", "0.9", "1.0.2"]
    assert sorted(chosen_releases(told, step)) == sorted(chosen)


def test_files_that_are_not_read_tell_what_a_package_exports() -> None:
    files = {
        "lib/__init__.py": b"define_import_structure('models')\n",
        "lib/models/one.py": b"class A: ...\nclass B: ...\n__all__ = [\n    'A',\n]\nx = [1]\n",
        "lib/models/two.py": b"class C: ...\n",
    }
    library = Library("lib", "1.0", members=("lib/*.py",), listed=True)
    told = read_files({path: narrowed(path, body, library) for path, body in files.items()}, library)
    assert {name for name in told.names if "A" in name or "B" in name or "C" in name} == {"lib:A"}
    assert "lib:*" not in told.names
    named = replace(library, named=("lib/models/*.py",))
    told = read_files({path: narrowed(path, body, named) for path, body in files.items()}, named)
    own = {"lib:A", "lib.models.one:A", "lib.models.one:B", "lib.models.two:C"}
    assert {name for name in told.names if name[-1:] in "ABC"} == own


def test_a_version_before_all_that_were_read_counts_as_the_first() -> None:
    from packaging.version import Version

    record = Record("gizmo", "gizmo", ["1.0", "2.0"], {}, {}, {}, {}, {}, {}, {}, {})
    assert record.has([[0, 0]], Version("0.4"))
    assert record.has([[0, 0]], Version("1.9"))
    assert not record.has([[0, 0]], Version("2.0.1"))
    assert record.others([[0, 0]]) == [[1, 1]]


def test_of_some_files_the_classes_are_told_by_what_they_define_themselves() -> None:
    library = Library("gizmo", "1", members=("gizmo/base.py",), defined=("gizmo/models/*.py",), part="models")
    base = b"class Base:\n    def keep(self): ...\n    def __init__(self, config): ...\n"
    model = (
        b"from torch import nn\nfrom ..base import Base\n"
        b'class Wheel(Base, nn.Module):\n    """Text: x = 1."""\n    %b\n'
        b"    def __init__(self, config, old=None):\n"
        b"        self.register_buffer('kept', None)\n        self.left: int = 1\n    def turn(self): ...\n"
        b"class Sub(Wheel): ...\ndef helper(): ...\n"
    )
    releases = {}
    for version, own in (("1", b"def keep(self): ..."), ("2", b"size = 1")):
        files: dict[str, bytes | None] = {
            "gizmo/__init__.py": b"",
            "gizmo/base.py": base,
            "gizmo/models/wheel.py": model % own,
        }
        if version == "2":
            files["gizmo/models/wheel.py"] = (
                (model % own).replace(b", old=None", b"").replace(b"left", b"right")
            )
        whole = {name: narrowed(name, body, library) for name, body in files.items()}
        releases[version] = read_files(whole, library)
    told = encode(releases, "gizmo")
    assert told["members"]["Sub"] == told["members"]["Wheel"]
    assert told["members"]["Wheel"] == {"left": [[0, 0]], "right": [[1, 1]], "size": [[1, 1]]}
    assert told["keywords"]["Wheel.__init__"] == {"old": [[0, 0]], "~1": [[1, 1]], "~2": [[0, 0]]}
    assert library.record == "gizmo+models"
    assert {"Sub:keep", "Sub:right", "Wheel:size"} <= inheriting(releases["2"]).members

"""What every form of a requirement line is taken for, and on which platforms every tag installs.

`whole_forms.tsv` is the record: each *line*, put together of a name, extras, versions, a marker and a place,
with what it is read as; each *tag* with a mark for each platform; what a requirement of an unknown package
*limits*; what a *lock* asks for; and two environments where there is no one, *split*, in each of their forms.
After the reader changed, `python tests/solve/test_whole_forms.py` writes it anew, and its diff says what is
read otherwise.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from random import Random

from solve_world import EMPTY, goal, world

from envdoctor.matrix import Matrix
from envdoctor.report import Format, draw
from envdoctor.solve.documents import Header, split_text
from envdoctor.solve.locked import read_locked
from envdoctor.solve.mending import _limit
from envdoctor.solve.pinning import pin
from envdoctor.solve.report import conflict_document
from envdoctor.solve.requests import parse_line
from envdoctor.target.platforms import parse_platform
from envdoctor.target.wheels import platform_fits

RECORD = Path(__file__).with_name("whole_forms.tsv")
LINES = 400


def parts(text: str) -> list[str]:
    return text.split("¦")


NAMES = parts(
    "torch¦Flash_Attn¦a.b-c¦x¦torch¦~torch¦./own¦/srv/own¦~/own¦../own-1.0.tar.gz¦-e .¦git+ssh://h/x¦1x¦é"
)
EXTRAS = parts("¦¦¦[a]¦[A_b, c]¦[]¦[a][b]¦ [a]¦[a")
VERSIONS = parts(
    "¦==2.1¦== 2.1.*¦===2.1¦>=2,<3¦~=2.1.0¦!=2.1.*¦(>=2)¦ >= 2 ,¦==2.1.x¦==2.x¦=2.1¦>2 <3¦==2.1+cu121¦"
    ">=2.0rc1¦<3.0.dev0¦==¦>=two¦~=2¦ 2.1¦==2.1,==2.2¦@2.1¦==$VERSION¦==${VERSION}¦==${ABSENT}"
)
PLACES = parts(
    "¦¦¦¦ @ https://h/x/torch-2.1.0-cp311-cp311-linux_x86_64.whl¦ @ file:///x/torch-2.1.0.tar.gz¦@ git+https://h/x"
    "¦ @ https://h/x/torch-2.1.0+cu121.zip#sha256=ab¦ @ /x/y.whl¦ @ x¦/torch-2.1.0.whl¦.tar.gz¦.zip¦.whl¦/"
)
MARKERS = parts(
    '¦¦¦; python_version < "3.9"¦;python_version>="3.9"¦ ; x¦; sys_platform == "win32" and extra == "a"¦;'
    "¦; this is no marker at all and goes on for a long while, longer than is shown of it # why"
    "¦ # comment¦#x¦ \\¦ --hash=sha256:ab¦ --no-binary x"
)
PLATFORMS = [
    parse_platform(name)
    for name in (
        *("x86_64-manylinux_2_17", "x86_64-manylinux_2_28", "aarch64-manylinux_2_35", "x86_64-musllinux_1_2"),
        *("windows", "x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc", "macos", "x86_64-apple-darwin"),
        "aarch64-apple-darwin",
    )
]
TAGS = parts(
    "any¦linux_x86_64¦linux_aarch64¦manylinux1_x86_64¦manylinux1_aarch64¦manylinux2010_x86_64¦manylinux2014_x86_64"
    "¦manylinux2014_aarch64¦manylinux_2_12_x86_64¦manylinux_2_17_x86_64¦manylinux_2_18_x86_64¦manylinux_2_28_x86_64"
    "¦manylinux_2_28_aarch64¦manylinux_2_29_x86_64¦manylinux_2_35_aarch64¦manylinux_2_36_aarch64¦manylinux_1_99_x86_64"
    "¦manylinux_3_0_x86_64¦musllinux_1_1_x86_64¦musllinux_1_2_x86_64¦musllinux_1_3_x86_64¦musllinux_1_1_aarch64"
    "¦win32¦win_amd64¦win_arm64¦macosx_10_9_x86_64¦macosx_11_0_arm64¦macosx_11_0_universal2¦macosx_99_0_arm64"
    "¦macosx_10_9_universal2¦linux_armv7l¦manylinux3014_x86_64¦"
)


LIMITS = parts(
    "a>=1¦a >=1,<2¦A_b.c (>=1)¦a[x]>=1¦a¦ a==1 ¦a~=1.0¦a!=1¦a =1¦a @ x¦>=1¦a()¦a ( )"
    "¦a<2 ; python_version > '3'¦é>1"
)
LOCKS = {
    "uv.lock": """version = 1
requires-python = ">=3.10"
[[package]]
name = "torch"
version = "2.6.0"
source = { registry = "https://download.pytorch.org/whl/cu124" }
[[package]]
name = "own"
version = "0.1"
source = { editable = "." }
[[package]]
name = "bare"
source = { git = "https://h/x" }
""",
    "conda-lock.yml": """version: 1
metadata:
  platforms: [linux-64]
package:
- {name: python, version: 3.11.9, manager: conda, platform: linux-64, category: main, optional: false}
- {name: trl, version: 0.9.6, manager: pip, platform: linux-64, category: main, optional: false}
""",
    "Pipfile.lock": """{"_meta": {"pipfile-spec": 6},
"default": {"torch": {"version": "==2.6.0"}, "own": {"path": "."}}}
""",
}
ROLES = {"engine": "serving", "trainer": "training", "tuner": "training"}
NEEDS = {"engine": "core==1", "trainer": "core==2", "tuner": "core==1", "plain": "core"}


def locked(name: str) -> str:
    """Return what a lock of that name asks for."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(LOCKS[name], encoding="utf-8")
        return f"{read_locked(path)!a}".replace(str(path), name)


def parted(asked: list[str]) -> Iterator[str]:
    """Yield an answer of two environments as a file, and its proof as people read it."""
    packages = {name: {"1": [needed], "1.1rc1": [needed]} for name, needed in NEEDS.items()}
    origin = {"source": "https://example.com", "checked_on": "2026-01-01", "basis": "upstream statement"}
    rows = [{"id": f"ROLE-{name}", "name": name, "role": role, **origin} for name, role in ROLES.items()]
    matrix = Matrix({"stack_role": rows}, "test", "2026-01-01", EMPTY.folder)
    answer = pin(goal(world({"core": {"1": [], "2": []}, **packages}), asked, matrix=matrix))
    yield split_text(answer, Header("0", "0", "2026-01-01", "pin"))
    yield from (draw(conflict_document(answer), form) for form in (Format.TEXT, Format.MARKDOWN))


def written(dice: Random) -> str:
    """Return a line of a file of requirements."""
    return "".join(dice.choice(choices) for choices in (NAMES, EXTRAS, VERSIONS, PLACES, MARKERS))


def lines() -> Iterator[str]:
    """Yield the record as it would be written today."""
    dice = Random(LINES)
    for _ in range(LINES):
        line = written(dice)
        yield f"line\t{line!a}\t{parse_line(line, 'x.txt, line 1', {'VERSION': '2.1'})!a}"
    yield from (f"limits\t{text}\t{_limit(text, 'owner')!a}" for text in LIMITS)
    yield from (f"lock\t{name}\t{locked(name)}" for name in LOCKS)
    for asked in (["engine", "trainer"], ["plain", "engine==1", "trainer"], ["engine", "tuner", "trainer"]):
        yield from (f"split\t{' '.join(asked)}\t{text!a}" for text in parted(asked))
    yield from (f"tag\t{tag}\t{''.join('.x'[platform_fits(tag, p)] for p in PLATFORMS)}" for tag in TAGS)


def test_every_form_is_read_as_it_was() -> None:
    for said, recorded in zip_longest(lines(), RECORD.read_text(encoding="utf-8").splitlines()):
        assert said == recorded


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")

"""What every form of a requirement line is taken for, and on which platforms every tag installs.

`whole_forms.tsv` is the record: each *line*, put together of a name, extras, versions, a marker and a place,
with what it is read as; each *tag* with a mark for each platform. After the reader changed, `python
tests/solve/test_whole_forms.py` writes it anew, and its diff says what is read otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from random import Random

from envdoctor.solve.requests import parse_line
from envdoctor.solve.wheels import platform_fits
from envdoctor.target.platforms import parse_platform

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


def written(dice: Random) -> str:
    """Return a line of a file of requirements."""
    return "".join(dice.choice(choices) for choices in (NAMES, EXTRAS, VERSIONS, PLACES, MARKERS))


def lines() -> Iterator[str]:
    """Yield the record as it would be written today."""
    dice = Random(LINES)
    for _ in range(LINES):
        line = written(dice)
        yield f"line\t{line!a}\t{parse_line(line, 'x.txt, line 1', {'VERSION': '2.1'})!a}"
    yield from (f"tag\t{tag}\t{''.join('.x'[platform_fits(tag, p)] for p in PLATFORMS)}" for tag in TAGS)


def test_every_form_is_read_as_it_was() -> None:
    for said, recorded in zip_longest(lines(), RECORD.read_text(encoding="utf-8").splitlines()):
        assert said == recorded


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")

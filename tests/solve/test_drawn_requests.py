"""Files of requirements drawn at random, in every form that is read: all that they ask for.

`drawn_requests.tsv` is the record, a file a line: its name, what is asked for, what binds, what is carried
and why, the options. After a reader changed, `python tests/solve/test_drawn_requests.py` writes it anew; with
a NUMBER it shows the file.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest

from envdoctor.errors import InputError
from envdoctor.solve.asking import options_of
from envdoctor.solve.request_files import read_requests
from envdoctor.solve.requests import Asked

RECORD = Path(__file__).with_name("drawn_requests.tsv")
FILES = 160
SHARES = 10
NAMES = ("torch", "Flash_Attn", "vllm", "a.b", "x", "numpy", "deepspeed")
EXTRAS = ("", "", "", "[gpu]", "[b, A_c]", "[]", " [all]")
SPECS = (
    *(
        "",
        "",
        ">=1.2",
        "==2.6.0",
        "== 2.6.0+cu124",
        "~=1.4",
        "<2,>=1",
        " (>=1.0,<3)",
        ">=1.2,",
        "==1.*",
        ">=1.0.*",
    ),
    *("===1.0", "!=1.5", ">=2rc1", "<2.0.dev1", "==1.0;", ">=two", "=>1", "!=2.0b1", "==2.1.post1", "=1.0"),
)
MARKERS = (
    "",
    "",
    "",
    ' ; python_version < "3.11"',
    '; sys_platform == "win32"',
    " ;extra == 'x'",
    " ; nonsense",
)
LINES = (
    *(
        "# a comment",
        "",
        "  ",
        "--pre",
        "-i https://example.com/simple",
        "--extra-index-url=https://example.com/x",
    ),
    *(
        "--extra-index-url https://download.pytorch.org/whl/cu124",
        "-f ./wheels",
        "-fx",
        "--no-binary :all:",
        "-q",
    ),
    *(
        "-e .",
        "-e ./own[test, more]",
        "--editable=git+https://example.com/r.git@v1.2#egg=r",
        "./own",
        "./none",
        "own/",
    ),
    *(
        "-r more.txt",
        "--requirement=more.txt",
        "-rmore.txt",
        "-c limits.txt",
        "--constraint limits.txt",
        "-r gone.txt",
    ),
    *(
        "-r https://example.com/r.txt",
        "-c https://example.com/c.txt",
        "git+https://u:p@example.com/x.git",
        "~/x.whl",
    ),
    *(
        "torch @ https://example.com/torch-2.6.0-cp311-cp311-linux_x86_64.whl",
        "./torch-2.6.0-py3-none-any.whl ; x",
    ),
    *(
        "x @ git+https://example.com/x@v1.4.0rc1",
        "x[a] @ https://example.com/x.zip#egg=y&sub=1",
        "y.tar.gz",
        "a/b",
    ),
    *(
        "https://example.com/torch-2.6.0%2Bcu124-cp311-cp311-linux_x86_64.whl?x=1#sha",
        "${GONE}",
        "x==${HERE}",
        "a b",
    ),
    *(
        "torch==2.6.0 --hash=sha256:aa \\",
        "numpy>=1 \\",
        "# not \\",
        "torch>=1 # why",
        "torch#1",
        "vllm --config x=1",
    ),
)
POETRY = (
    *(
        '"*"',
        '"^1.2.3"',
        '"^0.2.3"',
        '"^0.0.3"',
        '"^0"',
        '"~1.2.3"',
        '"~1"',
        '"~=1.4"',
        '"1.2"',
        '">=1,<2"',
        '""',
    ),
    *(
        '{version = "^2", extras = ["a", "b"]}',
        '{version = "1.0", markers = "python_version < \'3.11\'"}',
        '"^1, !=1.5"',
    ),
    *(
        '{git = "https://example.com/x.git", tag = "v1"}',
        '{git = "https://example.com/x.git", branch = "main"}',
    ),
    *(
        '{path = "../x"}',
        '{url = "https://example.com/x.whl"}',
        '{version = "1", optional = true}',
        '{extras = ["a"]}',
    ),
)
SHELL = (
    *(
        "RUN pip install {0} {1}",
        "!pip install -q {0}",
        "%pip install {0} && echo {1}",
        "pip3 install -U \\\n  {0} .",
        "ls {0}",
    ),
    *(
        "python -m pip install {0} -r more.txt",
        "uv pip install {0}",
        "conda install {0}",
        "pip download {0}",
        "x=1 pip install {0}",
    ),
)


def required(dice: Random) -> str:
    """Return a requirement as people write it."""
    return "".join(dice.choice(parts) for parts in (NAMES, EXTRAS, SPECS, MARKERS))


def plain(dice: Random) -> str:
    """Return a requirement without what a shell or a quoted text would read otherwise."""
    return f"{dice.choice(NAMES)}{dice.choice(('', '==1.2', '[gpu]', '~=2.0'))}"


def several(dice: Random, one: Callable[[Random], str] = plain) -> list[str]:
    return [one(dice) for _ in range(dice.randint(0, 4))]


def requirements(dice: Random) -> str:
    lines = [required(dice) if dice.random() < 0.5 else dice.choice(LINES) for _ in range(dice.randint(1, 6))]
    return dice.choice(("\n", "\n", "\r\n")).join(lines) + dice.choice(("", "\n"))


def pyproject(dice: Random) -> str:
    parts = []
    if dice.random() < 0.5:
        parts.append(f"[project]\ndependencies = {json.dumps(several(dice))}")
    if dice.random() < 0.4:
        parts.append(f"[dependency-groups]\ndev = {json.dumps(several(dice))}\ntest = ['x']")
    if dice.random() < 0.6:
        table = "\n".join(
            f"{name} = {dice.choice(POETRY)}" for name in dice.sample(("x", "torch", "python", "numpy"), 3)
        )
        parts.append(f"[tool.poetry.dependencies]\n{table}")
    return "\n".join(parts)


def pipfile(dice: Random) -> str:
    return "[packages]\n" + "\n".join(f"p{n} = {dice.choice(POETRY)}" for n in range(dice.randint(0, 4)))


def setup_cfg(dice: Random) -> str:
    return "[options]\ninstall_requires =\n" + "".join(f"    {one}\n" for one in several(dice))


def setup_py(dice: Random) -> str:
    wanted = dice.choice(
        ("DEPS", '[D["numpy"], "x>=1", y]', json.dumps(several(dice)), "read()", "(\"a\", 'b')")
    )
    lists = f"DEPS = {json.dumps(several(dice))}\nD = ['numpy>=1 # x', 'numpyro']\n"
    return f"{lists}setuptools.setup(install_requires={wanted})\n"


def conda(dice: Random) -> str:
    pip = "".join(f"    - {json.dumps(one)}\n" for one in several(dice))
    return f"dependencies:\n  - python=3.11\n  - numpy\n  - pip:\n{pip}" if dice.random() < 0.8 else "- x: ["


def shell(dice: Random) -> str:
    return "\n".join(dice.choice(SHELL).format(plain(dice), plain(dice)) for _ in range(dice.randint(1, 4)))


def notebook(dice: Random) -> str:
    kinds = [dice.choice(("code", "code", "markdown")) for _ in range(3)]
    return json.dumps({"cells": [{"cell_type": kind, "source": [shell(dice)]} for kind in kinds]})


FORMS: dict[str, Callable[[Random], str]] = {
    **{
        "requirements.txt": requirements,
        "pyproject.toml": pyproject,
        "Pipfile": pipfile,
        "setup.cfg": setup_cfg,
    },
    **{
        "setup.py": setup_py,
        "environment.yml": conda,
        "Dockerfile": shell,
        "run.sh": shell,
        "a.ipynb": notebook,
    },
}


def drawn(number: int) -> tuple[str, str]:
    """Return the name and the text of file `number`: every other one is a requirements file."""
    name = list(FORMS)[number // 2 % len(FORMS)] if number % 2 else "requirements.txt"
    return name, FORMS[name](Random(number))


BESIDE = {
    "more.txt": "numpy<2\n-c limits.txt\n-r more2.txt\n",
    "more2.txt": "einops\n",
    "limits.txt": "torch<2.7\nx==1.0 ; python_version < '3.11'\n-r more2.txt\n",
    "own/pyproject.toml": "[project]\ndependencies = ['own-needs']\n"
    "optional-dependencies = {test = ['pytest'], more = ['y']}\n",
}


def told(asked: Asked) -> str:
    """Return what is asked for on one line."""
    requests = [f"{one} from {one.source} {one.marker} {one.line} {one.exact}" for one in asked.requests]
    limits = [f"limit {one} {one.marker} {one.source}" for one in asked.constraints]
    carried = [
        f"{'judged' if one.judged else 'carried'} {one.shown}: {one.why} ({one.source})"
        for one in asked.carried
    ]
    implied = options_of(asked)
    sets = (implied.prereleases, implied.exact, implied.labels)
    said = [f"{[sorted(one) for one in sets]} {implied.any_prerelease}"]
    return " | ".join(
        " ".join(part.split()) for part in (*requests, *limits, *carried, *asked.options, *said)
    )


def line(number: int) -> str:
    """Return the record's line of a file."""
    name, text = drawn(number)
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {"HERE": "1.5"}):
        for beside, body in {**BESIDE, name: text}.items():
            path = Path(folder) / beside
            path.parent.mkdir(exist_ok=True)
            path.write_text(body, encoding="utf-8", newline="")
        try:
            asked = read_requests(Path(folder) / name)
            environment = {"python_version": "3.12", "sys_platform": "linux"}
            said = told(asked) + " || " + told(asked.under(environment))
        except InputError as error:
            said = str(error)
        return f"{name}\t{said}".replace(folder, "…")


@pytest.mark.parametrize("share", range(SHARES))
def test_each_file_is_read_as_it_was(share: int) -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    assert len(recorded) == FILES
    told = {number: line(number) for number in range(share, FILES, SHARES)}
    assert [said for number, said in told.items() if said != recorded[number]] == []


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*drawn(int(sys.argv[1])), line(int(sys.argv[1])), sep="\n")
    else:
        RECORD.write_text("".join(f"{line(number)}\n" for number in range(FILES)), encoding="utf-8")

"""Requirement files as people have them: every line is taken, and what cannot be judged is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from envdoctor.cli import main
from envdoctor.solve.request_files import read_requests
from envdoctor.target.platforms import parse_platform
from envdoctor.target.resolve import Target

ON = ["--python-version", "3.11", "--platform", "x86_64-manylinux_2_35", "--offline"]


class Answer:
    def __init__(self, capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> None:
        self.code = main(["pin", "-r", str(path), *ON, *words])
        self.out, self.err = capsys.readouterr()

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)  # type: ignore[no-any-return]

    @property
    def pins(self) -> dict[str, str]:
        return {pin["name"]: pin["version"] for pin in self.json["pins"]}

    def carried(self) -> dict[str, bool]:
        return {one["text"]: one["judged"] for one in self.json["carried"]}


@pytest.fixture
def pin(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    def run(text: str, *words: str, name: str = "requirements.txt") -> Answer:
        (tmp_path / name).write_text(text)
        return Answer(capsys, tmp_path / name, "--format", "json", *words)

    run.path = tmp_path  # type: ignore[attr-defined]
    return run


def test_a_marker_decides_whether_a_line_is_asked_for(pin: Any) -> None:
    answer = pin('einops\ntriton ; sys_platform == "win32"\n')
    assert answer.code == 0
    assert "triton" not in answer.pins
    assert answer.carried() == {'triton; sys_platform == "win32"': True}


def test_texts_that_are_compared_as_versions_are_are_decided_or_stay(pin: Any) -> None:
    answer = pin('idna ; implementation_name === "pypy"\nattrs ; os_name ~= "1"\neinops\n')
    assert "einops" in answer.pins
    assert answer.carried() == {
        'idna; implementation_name == "pypy"': True,
        'attrs ; os_name ~= "1"': False,
    }


def test_a_url_whose_known_releases_do_not_install_here_is_left_as_it_stands(pin: Any) -> None:
    line = "vllm @ https://example.com/vllm-main.zip"
    answer = pin(f"numpy\n{line}\n", "--platform", "macos")
    assert answer.json["status"] == "solved"
    assert answer.carried() == {line: False}
    assert list(answer.pins) == ["numpy"]


def test_two_lines_of_a_person_go_before_what_a_release_checks_when_it_uses_the_other(pin: Any) -> None:
    answer = pin("transformers==4.34.0\npeft==0.4.0\n")
    assert (answer.code, answer.pins["peft"]) == (0, "0.4.0")
    assert any("refuses to use peft 0.4.0" in note for note in answer.json["notes"])


def test_what_fails_in_use_alone_is_said_and_does_not_stand_against_two_lines(pin: Any) -> None:
    answer = pin("transformers==4.46.2\naccelerate==0.30.0\n")
    assert answer.pins["accelerate"] == "0.30.0"
    assert any("PAIR-OPTIMIZER-TRAIN" in note for note in answer.json["notes"])
    assert "PAIR-OPTIMIZER-TRAIN" not in " ".join(pin("transformers==4.46.2\naccelerate\n").json["notes"])
    assert pin("transformers==4.34.0\npeft\n").pins["peft"] != "0.4.0"  # what is left to us is chosen to fit


def test_constraints_bind_and_install_nothing(pin: Any, tmp_path: Path) -> None:
    (tmp_path / "limits.txt").write_text("numpy<2\npandas<2\n")
    answer = pin("-c limits.txt\ntransformers\n")
    assert answer.code == 0
    assert answer.pins["numpy"].startswith("1.")
    assert "pandas" not in answer.pins


def test_a_constraint_can_be_a_cause(pin: Any, tmp_path: Path) -> None:
    (tmp_path / "limits.txt").write_text("tokenizers<0.10\n")
    told = pin("-c limits.txt\ntransformers>=5\n").json
    assert told["status"] == "conflict"
    assert "tokenizers<0.10 is a constraint" in [cause["text"] for cause in told["conflict"]["causes"]]
    assert "the constraint tokenizers<0.10" in [one["drop"] for one in told["conflict"]["relaxations"]]


@pytest.mark.parametrize(
    "line",
    [
        "git+https://example.com/user/thing.git",
        "-e git+https://example.com/user/thing.git@main",
        "https://example.com/thing.tar.gz",
        "./missing_folder",
        "torch=>2",
        "some words that are none",
        "thing==${NOT_SET_ANYWHERE}",
        "no-such-package-at-all>=1",
        "-r https://example.com/requirements.txt",
        "-r not_there.txt",
    ],
)
def test_what_cannot_be_judged_stays_and_stops_nothing(pin: Any, line: str) -> None:
    answer = pin(f"einops\n{line}\n")
    assert answer.code == 3
    assert answer.json["status"] == "solved"
    assert "einops" in answer.pins
    assert list(answer.carried().values()) == [False]
    assert "requirements.txt:2: " in answer.err
    assert "not judged" in answer.err


def test_a_direct_reference_that_names_a_release_is_judged_as_it(pin: Any) -> None:
    wheel = "https://example.com/peft-0.14.0-py3-none-any.whl"
    answer = pin(f"peft @ {wheel}\ntransformers\n")
    assert answer.code == 0
    assert answer.carried() == {f"peft @ {wheel}": True}
    assert "peft" not in answer.pins
    assert pin("trl @ git+https://example.com/trl.git@v0.12.0\ntransformers>=5\n").code in (0, 1)


def test_a_direct_reference_without_a_release_is_not_pinned_over(pin: Any) -> None:
    answer = pin("accelerate @ git+https://example.com/accelerate.git\npeft\n")
    assert answer.code == 3
    assert "accelerate" not in answer.pins
    assert "peft" in answer.pins


def test_a_direct_reference_without_a_release_forbids_nothing(pin: Any) -> None:
    """No known release of peft goes with both; that of a branch may."""
    lines = "transformers<4.38\nhuggingface-hub<0.24\n"
    assert pin(f"peft>=0.14\n{lines}").code == 1
    answer = pin(f"peft @ git+https://example.com/peft.git\n{lines}")
    assert (answer.code, answer.json["status"]) == (3, "solved")
    assert "transformers" in answer.pins


def test_hashes_and_options_of_a_line_do_not_hide_it(pin: Any) -> None:
    answer = pin(f"einops==0.8.0 \\\n    --hash=sha256:{'0' * 64}\n--prefer-binary\n--no-index\n")
    assert answer.code == 0
    assert answer.pins["einops"] == "0.8.0"
    assert answer.carried() == {"--hash": True}


def test_pre_releases_are_chosen_when_the_file_says_so(pin: Any) -> None:
    assert pin("--pre\nvllm==0.11.0rc1\n").json["status"] in ("solved", "conflict", "unknown")


def test_a_loose_series_is_read_as_people_mean_it(pin: Any) -> None:
    answer = pin("scipy>=1.*\n")
    assert answer.code == 0
    assert "scipy" in answer.pins


@pytest.mark.parametrize(("label", "version"), [("cu118", "2.1.0"), ("cpu", "2.1.0"), ("cu121", "2.1.0")])
def test_local_labels_of_torch_are_its_builds(pin: Any, label: str, version: str) -> None:
    answer = pin(f"torch=={version}+{label}\n")
    assert answer.code == 0
    torch = next(one for one in answer.json["pins"] if one["name"] == "torch")
    assert (torch["version"], torch["index"]) == (version, None if label == "cu121" else label)


def test_a_local_label_of_another_package_is_judged_as_its_release(pin: Any) -> None:
    answer = pin("flash-attn==2.5.8+cu122torch2.3\n", "--allow-source")
    assert answer.json["status"] == "solved"
    assert answer.pins["flash-attn"] == "2.5.8"


@pytest.mark.parametrize(("label", "status"), [("cu118", "solved"), ("cu121", "conflict")])
def test_a_local_label_tells_which_cuda_a_package_is_built_for(pin: Any, label: str, status: str) -> None:
    answer = pin(f"torch==2.1.2+cu118\nxformers==0.0.23.post1+{label}\n", "--python-version", "3.10")
    assert answer.json["status"] == status


def test_a_line_that_no_installer_takes_is_told_and_not_written(pin: Any, tmp_path: Path) -> None:
    out = tmp_path / "pins.txt"
    pin("einops\neinops=0.7.0\n", "--format", "requirements", "-o", str(out))
    written = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    assert "as it stands, not judged: einops=0.7.0" in out.read_text()
    assert [line for line in written if "einops" in line and "==" not in line] == []


def test_a_local_project_brings_its_own_requirements(pin: Any, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "mine"\ndependencies = ["peft"]\n'
        '[project.optional-dependencies]\ntrain = ["einops"]\n'
    )
    answer = pin("-e .[train]\n")
    assert answer.code == 0
    assert {"peft", "einops"} <= answer.pins.keys()
    assert answer.carried() == {"-e .[train]": True}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nname = "mine"\ndependencies = ["einops>=0.7"]\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.10"\neinops = "^0.7"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.10"\neinops = "=0.7.0"\n'),
        ("setup.cfg", "[options]\ninstall_requires =\n    einops>=0.7\n"),
        (
            "setup.py",
            "from setuptools import setup\nneeds = ['einops>=0.7']\nsetup(install_requires=needs)\n",
        ),
        (
            "setup.py",
            "_deps = ['einops>=0.7', 'peft']\ndeps = {}\ninstall_requires = [deps['einops']]\n"
            "setup(install_requires=install_requires)\n",
        ),
        (
            "setup.py",
            "needs = {'install': ['einops'], 'all': ['peft']}\nlist_ = needs['install']\nlist_ += []\n"
            "list_ = list_ + [*[]]\nsetup(install_requires=list_)\n",
        ),
        (
            "setup.py",
            "if __name__ == '__main__':\n    with open('a') as file:\n        needs = ['einops>=0.7']\n"
            "    setup(install_requires=needs)\n",
        ),
        ("Pipfile", '[packages]\neinops = ">=0.7"\n'),
        ("environment.yml", "name: x\ndependencies:\n  - python=3.11\n  - pip:\n      - einops>=0.7\n"),
        ("Dockerfile", "FROM scratch\nRUN pip install --no-cache-dir 'einops>=0.7' && rm -r /tmp/x\n"),
        (
            "train.ipynb",
            '{"cells": [{"cell_type": "code", "source": ["!pip install -q einops>=0.7\\n", "print(1)"]}]}',
        ),
    ],
)
def test_other_files_that_list_requirements(pin: Any, name: str, text: str) -> None:
    answer = pin(text, name=name)
    assert answer.code == 0
    assert list(answer.pins) == ["einops"]


SILENT = "[tool.black]\nline-length = 99\n"


@pytest.mark.parametrize(
    ("asked", "files"),
    [
        ("pyproject.toml", {"pyproject.toml": SILENT, "setup.cfg": "[options]\ninstall_requires = einops\n"}),
        ("pyproject.toml", {"pyproject.toml": SILENT, "setup.py": "setup(install_requires=['einops'])\n"}),
        ("setup.py", {"setup.py": "setup()\n", "setup.cfg": "[options]\ninstall_requires = einops\n"}),
        ("setup.py", {"setup.py": "setup()\n", "pyproject.toml": '[project]\ndependencies = ["einops"]\n'}),
        (
            "setup.py",
            {"setup.py": "setup(install_requires=open('reqs/require.txt'))", "reqs/require.txt": "einops"},
        ),
        (
            "setup.py",
            {
                "setup.py": "def lines(path):\n    with open(path) as told:\n        return list(told)\n"
                "needed = lines('require.txt')\nmore = {'dev': lines('require-dev.txt')}\n"
                "setup(install_requires=needed, extras_require=more)\n",
                "require.txt": "einops",
                "require-dev.txt": "pytest",
            },
        ),
        (
            "pyproject.toml",
            {
                "pyproject.toml": '[project]\nname = "mine"\ndynamic = ["dependencies"]\n'
                '[tool.setuptools.dynamic]\ndependencies = {file = ["base.txt"]}\n',
                "base.txt": "-r more.txt\n",
                "more.txt": "einops\n",
            },
        ),
    ],
)
def test_a_project_file_that_leaves_it_to_another(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, asked: str, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    answer = Answer(capsys, tmp_path / asked, "--format", "json")
    assert list(answer.pins) == ["einops"]
    assert f"{asked} leaves the requirements to " in answer.err


@pytest.mark.parametrize(
    ("name", "text"), [("pyproject.toml", SILENT), ("setup.py", "setup(install_requires=read('a', 'b'))\n")]
)
def test_requirements_beside_a_silent_project_file_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "requirements-train.txt").write_text("einops\n")
    answer = Answer(capsys, tmp_path / name)
    assert answer.code == 3
    assert "beside it stands requirements-train.txt" in answer.err


def test_a_project_that_says_it_requires_nothing_is_believed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    (tmp_path / "setup.py").write_text("setup(install_requires=['einops'])\n")
    assert Answer(capsys, tmp_path / "pyproject.toml", "--format", "json").pins == {}


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n"])
def test_a_file_that_asks_for_nothing_is_no_answer(pin: Any, text: str) -> None:
    answer = pin(text)
    assert (answer.code, answer.out) == (2, "")
    assert "nothing is asked for" in answer.err


def test_requirements_keep_the_lines_and_constraints_name_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = "thing @ https://user:secret@example.com/thing.tar.gz"
    (tmp_path / "r.txt").write_text(f"--extra-index-url https://example.com/simple\neinops\n{line}\n")
    whole = Answer(capsys, tmp_path / "r.txt", "--format", "requirements")
    assert f"\n{line}\n" in whole.out
    assert "\n--extra-index-url https://example.com/simple\n" in whole.out
    bound = Answer(capsys, tmp_path / "r.txt")
    assert "secret" not in bound.out
    assert "# as it stands, not judged: thing @ https://example.com/thing.tar.gz" in bound.out


def test_a_file_of_powershell_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_bytes("einops==0.8.0\r\n".encode("utf-16"))
    assert Answer(capsys, tmp_path / "r.txt").code == 0


def test_files_that_include_one_another_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("-r b.txt\n")
    (tmp_path / "b.txt").write_text("-r a.txt\n")
    answer = Answer(capsys, tmp_path / "a.txt")
    assert answer.code == 2
    assert "includes itself" in answer.err


def test_an_extra_that_means_nothing_is_said(pin: Any) -> None:
    answer = pin("einops[no-such-extra]\n")
    assert answer.code == 0
    assert "asks for nothing under the extra no-such-extra" in answer.json["notes"][0]
    assert "asks for nothing under the extra no-such-extra" in answer.err


def test_why_not_says_that_only_a_variant_serves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why-not", "torch==2.14.1", "--driver", "535.183.01", *ON]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "nothing forbids it" in out
    assert "only as 2.14.1+cu126, not as the build of the default index" in out
    assert "which driver 535.183.01 cannot run" in out


def test_a_file_whose_requirements_are_computed_is_said(pin: Any) -> None:
    answer = pin(
        "from setuptools import setup\nsetup(install_requires=open('r.txt').readlines())\n", name="setup.py"
    )
    assert answer.code == 3
    assert "names no requirement that can be read without running it" in answer.err


def test_what_a_compiler_would_warn_of_is_not_told(pin: Any) -> None:
    answer = pin("x = 1if 2 else 3\nsetup(install_requires=['einops>=0.7'])\n", name="setup.py")
    assert answer.code == 0
    assert "SyntaxWarning" not in answer.err


@pytest.mark.parametrize(
    ("line", "judged_elsewhere", "prereleases"),
    [
        ("--pre", False, True),
        ("--prefer-binary", False, False),
        ("-i https://download.pytorch.org/whl/cu126", False, False),
        ("--extra-index-url=https://example.com/simple", True, False),
        ("--find-links https://example.com/wheels", True, False),
        ("-fhttps://example.com/wheels", True, False),
    ],
)
def test_options_go_along_as_they_stand(
    line: str, judged_elsewhere: bool, prereleases: bool, tmp_path: Path
) -> None:
    (tmp_path / "r.txt").write_text(f"{line}\ntorch\n")
    asked = read_requests(tmp_path / "r.txt")
    assert asked.options == (line,)
    assert [one.text for one in asked.carried if one.judged] == ([line] if judged_elsewhere else [])
    assert asked.prereleases is prereleases


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        (
            '[{ version = "~=2.10.0", platform = "!=darwin" }, { version = "^2.9", platform = "darwin" }]',
            "~=2.10.0",
        ),
        (
            '[{ version = "2.9.1", python = ">=3.12 || <3.10" }, { version = "2.8.0", python = "~3.11" }]',
            "==2.8.0",
        ),
        (
            '{ version = ">=2.8", markers = "os_name == \'posix\' or os_name == \'nt\'", python = "*" }',
            ">=2.8",
        ),
    ],
)
def test_poetrys_lines_hold_on_the_pythons_and_platforms_that_they_name(
    told: str, asked: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.poetry.dependencies]\ntorch = {told}\n")
    environment = Target((3, 11), parse_platform("x86_64-manylinux_2_35")).marker_environment()
    (request,) = read_requests(tmp_path / "pyproject.toml").under(environment).requests
    assert request.spec == asked


def test_a_release_that_a_named_place_may_have_is_not_judged(pin: Any) -> None:
    asked = "numpy\ntorchaudio==9.9\n"
    assert pin(asked).code == 1
    answer = pin(f"--find-links https://example.com/wheels\n{asked}")
    assert answer.code == 3
    assert "numpy" in answer.pins
    assert answer.carried()["torchaudio==9.9"] is False


def test_what_uv_takes_from_a_place_is_not_looked_for_on_the_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "a"\ndependencies = ["library>=1", "einops", "own[x]", "Held_One"]\n'
        '[tool.uv.sources]\nlibrary = { path = "sd-scripts" }\nown = { workspace = true }\n'
        'einops = { index = "some" }\n'
        'held-one = [{ git = "https://example.com/held", rev = "ab", '
        "marker = \"sys_platform == 'linux'\" }]\n",
        encoding="utf-8",
    )
    words = ["-r", str(tmp_path / "pyproject.toml"), "--python-version", "3.10", "--offline"]
    main(["pin", *words, "--platform", "x86_64-manylinux_2_35", "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["pins"]] == ["einops"]
    assert [one["text"].split(" ;")[0] for one in told["carried"]] == [
        "library @ sd-scripts",
        "own[x] @ ./",
        "Held_One @ git+https://example.com/held@ab",
    ]


STACK = ("--python-version", "3.11", "--platform", "x86_64-manylinux_2_35", "--offline", "--allow-source")


def pinned_project(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> tuple[Any, dict[str, Any]]:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    main(["pin", "-r", str(folder / "pyproject.toml"), *STACK, "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    return told, {one["name"]: one for one in told["pins"]}


def test_an_override_stands_in_the_place_of_what_packages_require(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = '[project]\nname = "a"\ndependencies = ["vllm==0.8.5", "transformers<4.45"]\n'
    told, pins = pinned_project(tmp_path, capsys, project)
    assert told["status"] == "conflict"
    over = '[tool.uv]\noverride-dependencies = ["transformers>=4.40,<4.50", "xformers; os_name == \'nt\'"]\n'
    told, pins = pinned_project(tmp_path, capsys, project + over)
    assert told["status"] == "solved"
    assert pins["transformers"]["version"].startswith("4.49")
    assert any("held to >=4.40,<4.50 by" in why for why in pins["transformers"]["because"])
    assert "vllm 0.8.5 requires it" in pins["transformers"]["because"]
    assert "xformers" not in pins


def test_an_override_that_nothing_meets_is_named_in_the_conflict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, _ = pinned_project(
        tmp_path,
        capsys,
        '[project]\nname = "a"\ndependencies = ["einops"]\n'
        '[tool.uv]\noverride-dependencies = ["einops>90"]\n',
    )
    causes = [one["text"] for one in told["conflict"]["causes"]]
    assert "einops>90 is a constraint" in causes
    sources = [one["source"] for one in told["conflict"]["causes"]]
    assert any("override-dependencies" in one for one in sources)


def test_a_constraint_of_a_project_holds_what_others_bring(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = '[project]\nname = "a"\ndynamic = ["dependencies"]\n'
    project += '[tool.setuptools.dynamic]\ndependencies = {file = ["needs.txt"]}\n'
    (tmp_path / "needs.txt").write_text("peft\n")
    kept = '[tool.uv]\nconstraint-dependencies = ["accelerate<1.5", "unasked<2"]\n'
    _, pins = pinned_project(tmp_path, capsys, project + kept)
    assert pins["accelerate"]["version"] == "1.4.0"
    assert any("held to <1.5 by" in why for why in pins["accelerate"]["because"])
    assert "unasked" not in pins


def test_what_a_project_states_of_a_package_stands_for_its_metadata(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = '[project]\nname = "a"\ndependencies = ["vllm==0.8.5", "transformers<4.45"]\n'
    of_it = '[[tool.uv.dependency-metadata]]\nname = "vllm"\nversion = "0.8.5"\n'
    stated = of_it + 'requires-dist = ["transformers>=4.40", "torch==2.6.0"]\n'
    told, pins = pinned_project(tmp_path, capsys, project + stated)
    assert told["status"] == "solved"
    assert pins["transformers"]["version"].startswith("4.44")
    assert "vllm 0.8.5 requires >=4.40" in pins["transformers"]["because"]
    assert "ray" not in pins


def test_a_project_of_another_python_is_a_conflict_with_the_nearest_that_it_runs_on(pin: Any) -> None:
    text = '[project]\nname = "x"\nrequires-python = "%s"\ndependencies = ["einops"]\n'
    answer = pin(text % ">=3.12", name="pyproject.toml")
    told = answer.json["conflict"]
    assert answer.code == 1
    assert [cause["text"] for cause in told["causes"]] == [
        "the project needs Python >=3.12; the target has 3.11"
    ]
    assert [way["drop"] for way in told["relaxations"]] == ["Python 3.11 for 3.12"]
    told = pin(text.replace("einops", "torch==2.6.0") % ">=3.12", "--gpu", "B200", name="pyproject.toml").json
    changed = [(line["old"], line["new"]) for line in told["conflict"]["lines"]]
    assert changed == [("Python 3.11", "Python 3.12"), ("torch==2.6.0", "torch==2.7.1")]
    assert pin(text % ">=3.11.4,<3.13", name="pyproject.toml").code == 0
    assert pin(text % "3.9 || 3.10", name="pyproject.toml").code == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("setup.cfg", "[options]\npython_requires = <3.11\ninstall_requires = einops\n"),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "~3.10"\neinops = "*"\n'),
    ],
)
def test_older_forms_of_a_project_say_their_python_as_well(pin: Any, name: str, text: str) -> None:
    assert pin(text, name=name).json["conflict"]["causes"][0]["kind"] == "target"
    assert main(["why-not", "einops", "-r", str(pin.path / name), *ON]) == 1


def test_what_an_override_sets_aside_is_kept_where_that_can_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = (
        '[project]\nname = "a"\ndependencies = ["ml-dtypes", "numpy<2"]\n'
        '[tool.uv]\noverride-dependencies = ["numpy>=1.26,<2"]\n'
    )
    _, pins = pinned_project(tmp_path, capsys, project)
    assert Version(pins["ml-dtypes"]["version"]) < Version("0.6")
    assert any(why.startswith("not 0.6") for why in pins["ml-dtypes"]["because"])


def test_what_is_built_from_its_repository_is_not_looked_up_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "requirements.txt").write_text("einops\napex\n")
    words = [one for one in STACK if one != "--offline"]
    main(["pin", "-r", str(tmp_path / "requirements.txt"), *words, "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert "another project's" in str(told)
    assert [one["name"] for one in told["pins"]] == ["einops"]


@pytest.mark.parametrize(("python", "noted"), [("3.11", True), ("3.11.7", False)])
def test_what_needs_a_later_release_of_a_python_says_so(
    capsys: pytest.CaptureFixture[str], python: str, noted: bool
) -> None:
    main(["pin", "soupsieve==4.1.3", "--python-version", python, *STACK[2:]])
    assert (
        "soupsieve 4.1.3 needs Python >=3.11.5: not every 3.11 serves" in capsys.readouterr().out
    ) is noted

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elf_files import make_elf
from environments import install, make_venv

from envdoctor.probes import NoInterpreter, environment
from envdoctor.probes.builds import read_extension, read_torch
from envdoctor.probes.distributions import parse_direct_url, parse_headers
from envdoctor.probes.interpreter import check_interpreter
from envdoctor.probes.machine import Machine


def read(prefix, **environ):
    return environment.read(Machine(python=str(prefix), environ=environ))["environment"]


def test_a_virtual_environment_is_read_from_its_files_alone(tmp_path):
    site = make_venv(tmp_path / "venv")
    install(
        site,
        "Flask_SQLAlchemy",
        "3.1",
        ["flask>=2", "tox; extra == 'test'", "x (>=1) ; (python_version<'3') and extra=='y'"],
    )
    told = read(tmp_path / "venv")
    assert told["python"] == {"value": "3.12.3", "source": "pyvenv.cfg"}
    assert told["kind"]["value"] == "venv"
    assert told["complete"] is True
    assert told["distributions"]["flask-sqlalchemy"] == {
        "name": "flask-sqlalchemy",
        "version": "3.1",
        "source": "Flask_SQLAlchemy-3.1.dist-info",
        "location": str(site),
        "installer": "pip",
        "requires": ["flask>=2"],
    }


def test_the_active_environment_is_examined_unless_another_is_named(tmp_path):
    make_venv(tmp_path / "active")
    make_venv(tmp_path / "named", "3.10.1")
    environ = {"VIRTUAL_ENV": str(tmp_path / "active")}
    assert environment.read(Machine(environ=environ))["environment"]["python"]["value"] == "3.12.3"
    assert read(tmp_path / "named", **environ)["python"]["value"] == "3.10.1"


def test_without_an_active_environment_our_own_is_examined():
    told = environment.read(Machine(environ={}))["environment"]
    assert told["executable"]["value"] == sys.executable


def test_broken_installs_are_named(tmp_path):
    site = make_venv(tmp_path / "venv")
    install(site, "torch", "2.1.0")
    (site / "~orch-2.0.0.dist-info").mkdir()
    (site / "peft-0.9.0.dist-info").mkdir()
    install(site, "vllm", "0.9.0", files=["vllm/__init__.py", "vllm/_C.abi3.so"])
    (site / "vllm/_C.abi3.so").unlink()
    (install(site, "idna", "3.1") / "RECORD").unlink()
    told = read(tmp_path / "venv")
    problems = "\n".join(told["problems"])
    assert "torch: its module torch is missing" in problems
    assert "interrupted install or uninstall: ~orch-2.0.0.dist-info" in problems
    assert "peft: peft-0.9.0.dist-info holds no METADATA" in problems
    assert "vllm: files it recorded are missing: vllm/_C.abi3.so" in problems
    assert "idna: idna-3.1.dist-info holds no RECORD" in problems
    assert told["distributions"]["peft"]["version"] == "0.9.0"


def test_two_dist_infos_of_one_name_are_a_problem_and_the_later_one_counts(tmp_path):
    site = make_venv(tmp_path / "venv")
    os.utime(install(site, "numpy", "2.3.0", files=["numpy/__init__.py"]), (1000, 1000))
    install(site, "numpy", "1.26.4")
    told = read(tmp_path / "venv")
    assert told["distributions"]["numpy"]["version"] == "1.26.4"
    assert (
        "installed twice in one folder: numpy-1.26.4.dist-info and numpy-2.3.0.dist-info"
        in told["problems"][0]
    )


def test_the_users_own_packages_hide_those_of_conda(tmp_path):
    site = make_conda(tmp_path / "env", {"transformers": "4.40.0"})
    install(site, "transformers", "4.40.0", files=["transformers/__init__.py"], installer="conda")
    user = tmp_path / "home/.local/lib/python3.11/site-packages"
    user.mkdir(parents=True)
    install(user, "transformers", "5.1.0", files=["transformers/__init__.py"])
    told = read(tmp_path / "env", HOME=str(tmp_path / "home"))
    assert told["distributions"]["transformers"]["version"] == "5.1.0"
    assert f"transformers is there twice: 5.1.0 in {user} hides 4.40.0 in {site}" in told["problems"]
    isolated = read(tmp_path / "env", HOME=str(tmp_path / "home"), PYTHONNOUSERSITE="1")
    assert isolated["distributions"]["transformers"]["version"] == "4.40.0"


def make_conda(folder, packages):
    site = folder / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (folder / "lib/python3.11/os.py").touch()
    (folder / "bin").mkdir()
    (folder / "bin/python3.11").write_text("")
    (folder / "bin/python3.11").chmod(0o755)
    (folder / "bin/python").symlink_to("python3.11")
    (folder / "conda-meta").mkdir()
    for name, version in {"python": "3.11.9", **packages}.items():
        (folder / f"conda-meta/{name}-{version}-h1_0.json").write_text("{}")
    return site


def test_conda_and_pip_in_one_environment(tmp_path):
    site = make_conda(
        tmp_path / "env", {"pytorch": "2.1.0", "pytorch-cuda": "12.1", "numpy": "1.26.4", "zlib": "1.3"}
    )
    install(site, "torch", "2.3.0", files=["torch/__init__.py"])
    install(site, "numpy", "1.26.4", files=["numpy/__init__.py"], installer="conda")
    told = read(tmp_path / "env")
    assert told["kind"]["value"] == "conda"
    assert told["python"] == {"value": "3.11.9", "source": "conda-meta/python-3.11.9-h1_0.json"}
    assert told["distributions"]["pytorch-cuda"]["origin"] == "conda"
    assert told["distributions"]["numpy"]["origin"] == "conda"
    assert "zlib" not in told["distributions"]
    assert told["problems"] == ["torch: conda installed 2.1.0, then pip put 2.3.0 over it"]


def test_editable_installs_old_and_new(tmp_path):
    site = make_venv(tmp_path / "venv")
    info = install(site, "mine", "0.1")
    (info / "direct_url.json").write_text('{"dir_info": {"editable": true}, "url": "file:///src/mine"}')
    (tmp_path / "src/older.egg-info").mkdir(parents=True)
    (tmp_path / "src/older.egg-info/PKG-INFO").write_text("Name: older\nVersion: 0.2\n")
    (site / "older.egg-link").write_text(f"{tmp_path}/src\n.")
    told = read(tmp_path / "venv")["distributions"]
    assert (told["mine"]["editable"], told["mine"]["origin"]) == (True, "file")
    assert (told["older"]["editable"], told["older"]["version"]) == (True, "0.2")


def test_folders_that_pth_files_name_are_read_too(tmp_path):
    site = make_venv(tmp_path / "venv")
    (tmp_path / "more").mkdir()
    install(tmp_path / "more", "extra-package", "1.0")
    (site / "more.pth").write_text(f"import nothing\n# remark\n{tmp_path}/more\n")
    assert "extra-package" in read(tmp_path / "venv")["distributions"]


def test_an_environment_whose_interpreter_is_gone(tmp_path):
    make_venv(tmp_path / "venv", home="/nowhere/bin")
    assert "is gone: /nowhere/bin" in read(tmp_path / "venv")["problems"][0]


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_script_is_followed_to_the_interpreter_that_it_starts(tmp_path):
    make_venv(tmp_path / "venv")
    shim = program(tmp_path / "python", f'#!/bin/sh\nexport A=1\nexec "{tmp_path}/venv/bin/python" "$@"\n')
    assert read(shim)["python"] == {"value": "3.12.3", "source": "pyvenv.cfg"}


@pytest.mark.parametrize("chosen", ["variable", "folder", "root"])
def test_pyenvs_shims_are_followed(tmp_path, monkeypatch, chosen):
    make_venv(tmp_path / "versions/3.12.3")
    text = f'export PYENV_ROOT="{tmp_path}"\nexec "{tmp_path}/libexec/pyenv" exec "$program" "$@"\n'
    shim = program(tmp_path / "shims/python", "#!/usr/bin/env bash\nset -e\n" + text)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    name = {"folder": ".python-version", "root": "version"}.get(chosen)
    if name:
        (tmp_path / name).write_text("3.12.3\n")
    environ = {} if name else {"PYENV_VERSION": "3.12.3"}
    assert read(shim, **environ)["python"]["value"] == "3.12.3"


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('puts("3.11.9\\n/usr"); return 0;', "3.11.9"),
        ('puts("3.11.9\\n/usr"); return 1;', "is no Python: it ended with 1"),
        ('puts("3.11.9\\n/nowhere-at-all"); return 0;', "names as its prefix what is no folder"),
        ('puts("[1, 2, 3, 4]"); return 0;', "is no Python"),
        ('puts("9999999999.1.1\\n/usr"); return 0;', "is no Python"),
        ("return 0;", "is no Python"),
        ("raise(11);", "is no Python: it ended with -11"),
        ("for (;;) pause();", "gave no answer within 0.5 s"),
        ('for (;;) puts("junk");', "wrote more than"),
    ],
)
def test_a_program_that_its_files_do_not_explain_is_asked(tmp_path, monkeypatch, answer, expected):
    monkeypatch.setattr("envdoctor.probes.asking.ASK_LIMIT_S", 0.5)
    headers = "".join(f"#include <{name}.h>\n" for name in ("stdio", "signal", "unistd"))
    source = headers + "int main(void) {" + answer + "}\n"
    subprocess.run(
        ["gcc", "-w", "-x", "c", "-", "-o", tmp_path / "python"], input=source, text=True, check=True
    )
    answer = environment.read(Machine(python=str(tmp_path / "python"), environ={}))
    told = answer["environment"]["python"]
    if "unread" in answer:
        assert expected in told["unknown"]
        assert answer["unread"] == {"environment": told["unknown"]}
    else:
        assert told == {"value": expected, "source": "the interpreter itself"}


@pytest.mark.parametrize("name", ["/nowhere/python", "no-such-python-here", "folder"])
def test_what_is_no_interpreter_is_refused(tmp_path, monkeypatch, name):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoInterpreter):
        check_interpreter(Machine(environ={"PATH": "/usr/bin"}), name)


def test_build_facts(tmp_path):
    site = make_venv(tmp_path / "venv")
    install(site, "torch", "2.11.0", files=["torch/__init__.py", "torch/lib/libc10.so"])
    (site / "torch/version.py").write_text(
        "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
    )
    (site / "torch/lib/libc10.so").write_bytes(
        make_elf(symbols=b"_ZN3c105ErrorC1ENSt7__cxx1112basic_string\0")
    )
    binaries = [f"bitsandbytes/libbitsandbytes_{name}.so" for name in ("cpu", "cuda126", "cuda130")]
    install(site, "bitsandbytes", "0.50.2", files=["bitsandbytes/__init__.py", *binaries])
    install(site, "xformers", "0.0.30", files=["xformers/__init__.py"])
    (site / "xformers/cpp_lib.json").write_text(
        '{"version": {"cuda": 1206, "torch": "2.7.0+cu126", "python": "3.9.22"},'
        ' "env": {"TORCH_CUDA_ARCH_LIST": "8.0+PTX 9.0a"}}'
    )
    install(site, "deepspeed", "0.16.0", files=["deepspeed/__init__.py"])
    (site / "deepspeed/git_version_info_installed.py").write_text(
        "version='0.16.0'\ninstalled_ops={'async_io': False, 'fused_adam': True}\n"
        "torch_info={'version': '2.5', 'bf16_support': True, 'cuda_version': '12.4'}\n"
    )
    assert read(tmp_path / "venv")["builds"] == {
        "torch": {"version": "2.11.0+cu130", "cuda": "13.0", "cxx11_abi": True},
        "bitsandbytes": {"binaries": ["cpu", "cuda126", "cuda130"]},
        "xformers": {
            "torch": "2.7.0+cu126",
            "cuda": "12.6",
            "python": "3.9.22",
            "arch_list": ["8.0+PTX", "9.0a"],
        },
        "deepspeed": {"torch": "2.5", "cuda": "12.4", "built_ops": ["fused_adam"]},
    }


def test_hostile_files_cost_their_own_facts_only(tmp_path):
    site = make_venv(tmp_path / "venv")
    install(site, "xformers", "0.0.30", files=["xformers/__init__.py"])
    (site / "xformers/cpp_lib.json").write_text("[" * 200_000)
    (site / "pipe-1.0.dist-info").mkdir()
    os.mkfifo(site / "pipe-1.0.dist-info/METADATA")
    (site / "\x1b[2Jevil-1.0.dist-info").mkdir()
    os.mkdir(os.fsencode(site) + b"/bad-\xff.dist-info")
    install(site, "fine", "1.0")
    told = read(tmp_path / "venv")
    assert set(told["distributions"]) == {"xformers", "pipe", "fine"}
    assert "RecursionError" in told["builds"]["xformers"]["unknown"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n", "cpu"),
        ("__version__ = '2.9.0+rocm6.4'\ncuda = None\nhip = '6.4'\n", "rocm"),
        ("__version__ = '2.0.1+cu117'\ncuda = '11.7'\n", None),
    ],
)
def test_torchs_variant(tmp_path, text, expected):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/version.py").write_text(text)
    assert read_torch(str(tmp_path)).get("variant") == expected


def test_what_an_extension_was_built_for(tmp_path):
    name = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
    symbols = b"_ZN3c105ErrorC2ENS_14SourceLocationESs\0_ZNK3c104funcERKSs\0"
    (tmp_path / name).write_bytes(make_elf(["libc10.so", "libcudart.so.12"], symbols=symbols))
    assert read_extension(str(tmp_path), name) == {
        "extension": name,
        "python": "3.11",
        "cuda_major": 12,
        "cxx11_abi": False,
    }


def test_the_cuda_that_vllms_extensions_need(tmp_path):
    site = make_venv(tmp_path / "venv")
    install(site, "vllm", "0.33.0", files=["vllm/__init__.py", "vllm/_C_stable_libtorch.abi3.so"])
    (site / "vllm/_C_stable_libtorch.abi3.so").write_bytes(make_elf(["libcudart.so.13"]))
    told = read(tmp_path / "venv")["builds"]["vllm"]
    assert told == {"extensions": ["_C_stable_libtorch.abi3.so"], "cuda_major": 13}


def test_a_free_threaded_environment(tmp_path):
    site = make_venv(tmp_path / "venv", "3.13.1")
    site.parent.rename(site.parent.with_name("python3.13t"))
    install(tmp_path / "venv/lib/python3.13t/site-packages", "numpy", "2.3.0", files=["numpy/__init__.py"])
    assert "numpy" in read(tmp_path / "venv")["distributions"]


def test_windows_line_ends_and_odd_headers():
    data = (
        b"Metadata-Version: 2.1\r\nName: unsloth-zoo\r\nVersion: 2026.1\r\nRequires-Dist: torch (>=2.4)\r\n"
    )
    assert parse_headers(data) == ("unsloth-zoo", "2026.1", ["torch (>=2.4)"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, (False, None)),
        ('{"url": "https://x/y.git", "vcs_info": {"vcs": "git"}}', (False, "vcs")),
        ('{"url": "file:///w/x.whl", "archive_info": {}}', (False, "file")),
        ('{"url": "https://x/y.whl", "archive_info": {}}', (False, "url")),
    ],
)
def test_where_an_install_came_from(text, expected):
    assert parse_direct_url(text) == expected

"""Hostile environments: each a function that makes one, and what must be known, or not known, of it."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Facts = dict[str, Any]
Check = Callable[[Facts], bool]


class Hostile(NamedTuple):
    """One environment: how it is made, and either the part that is not known or what holds of the facts."""

    name: str
    make: Callable[[Place], None]
    unread: str | None
    holds: Check


class Place:
    """A virtual environment to be spoilt, the options and variables it is examined with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prefix = folder / "env"
        self.site = self.prefix / "lib/python3.12/site-packages"
        self.environ: dict[str, str] = {}
        self.python: str | None = str(self.prefix)
        self.site.mkdir(parents=True)
        (self.prefix / "bin").mkdir()
        self.write("env/bin/python", "#!/bin/sh\nexit 1\n", 0o755)
        self.write("env/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.3\n")
        self.install("fine", "1.0")

    def write(self, path: str, text: str | bytes, mode: int = 0o644) -> Path:
        """Write a file below the folder."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        target.chmod(mode)
        return target

    def install(self, name: str, version: str, metadata: str | bytes | None = None) -> Path:
        """Install a distribution with that METADATA."""
        info = self.site / f"{name}-{version}.dist-info"
        info.mkdir()
        told = (
            f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\n" if metadata is None else metadata
        )
        (info / "METADATA").write_bytes(told.encode() if isinstance(told, str) else told)
        return info

    def torch(self) -> Path:
        """Install a torch with a version file, and return its folder of libraries."""
        self.install("torch", "2.9.0")
        library = self.site / "torch/lib"
        library.mkdir(parents=True)
        (self.site / "torch/version.py").write_text("__version__ = '2.9.0+cu128'\ncuda = '12.8'\n")
        return library


HOSTILE: list[Hostile] = []


def hostile(
    unread: str | None = None, holds: Check | None = None
) -> Callable[[Callable[[Place], None]], Any]:
    """Take a function that spoils an environment into the list."""

    def take(make: Callable[[Place], None]) -> Callable[[Place], None]:
        HOSTILE.append(Hostile(make.__name__, make, unread, holds or fine_is_there))
        return make

    return take


def fine_is_there(facts: Facts) -> bool:
    """The package that nobody spoilt is known."""
    return bool(facts["environment"]["distributions"]["fine"]["version"] == "1.0")


def packages(*names: str) -> Check:
    """These distributions are known, and the sound one."""
    return lambda facts: {"fine", *names} <= set(facts["environment"]["distributions"])


def always(facts: Facts) -> bool:
    """Nothing further is asked."""
    return True


# The interpreter and its settings.


@hostile(
    holds=lambda f: f["environment"]["python"]["value"] == "3.12.3" and bool(f["environment"]["problems"])
)
def interpreter_gone(place: Place) -> None:
    (place.prefix / "bin/python").unlink()
    (place.prefix / "bin/python").symlink_to("/nowhere/python3.12")


@hostile("environment", always)
def interpreter_is_a_script(place: Place) -> None:
    place.python = str(place.write("odd/python", "#!/bin/sh\nsleep 1000\n", 0o755))


@hostile("environment", always)
def interpreter_is_text(place: Place) -> None:
    place.python = str(place.write("odd/python", "hello", 0o755))


@hostile("environment", always)
def interpreter_is_empty(place: Place) -> None:
    place.python = str(place.write("odd/python", "", 0o755))


@hostile("environment", always)
def scripts_start_one_another(place: Place) -> None:
    for one, two in (("a", "b"), ("b", "a")):
        place.write(f"odd/{one}", f'#!/bin/sh\nexec {place.folder}/odd/{two} "$@"\n', 0o755)
    place.python = str(place.folder / "odd/a")


@hostile("environment", always)
def script_of_a_megabyte(place: Place) -> None:
    text = "#!/bin/sh\n" + 'exec -a "/' * 100_000
    place.python = str(place.write("odd/python", text, 0o755))


@hostile("environment", always)
def a_truncated_program(place: Place) -> None:
    place.python = str(place.write("odd/python", b"\x7fELF\x02\x01", 0o755))


@hostile("environment", always)
def settings_are_a_fifo(place: Place) -> None:
    (place.prefix / "pyvenv.cfg").unlink()
    os.mkfifo(place.prefix / "pyvenv.cfg")


@hostile("environment", always)
def settings_are_empty(place: Place) -> None:
    (place.prefix / "pyvenv.cfg").write_text("")


@hostile(holds=lambda f: f["environment"]["python"]["value"] == "3.12" and fine_is_there(f))
def settings_of_noise(place: Place) -> None:
    (place.prefix / "pyvenv.cfg").write_bytes(
        b"=\n==\n\xff\xfe=\x00\n" + os.urandom(2000).replace(b"=", b"") * 100
    )


@hostile(holds=lambda f: fine_is_there(f) and len(f["environment"]["python"]["value"]) < 100)
def settings_with_a_version_of_5000_digits(place: Place) -> None:
    (place.prefix / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = 3.12.3\nx = {'9' * 5000}\n")


@hostile(holds=lambda f: fine_is_there(f) and f["environment"]["python"]["value"] == "3.12")
def settings_with_an_endless_version(place: Place) -> None:
    (place.prefix / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {'9' * 5000}.1.1\n")


@hostile(holds=lambda f: fine_is_there(f) and f["environment"]["python"]["value"] == "3.12")
def settings_with_digits_of_another_script(place: Place) -> None:
    (place.prefix / "pyvenv.cfg").write_text("home = /usr/bin\nversion = ３.１２.٣\n")


@hostile()
def settings_that_lead_to_a_device(place: Place) -> None:
    text = "home = /dev/zero\nversion = 3.12.3\ninclude-system-site-packages = true\n"
    (place.prefix / "pyvenv.cfg").write_text(text)


@hostile()
def settings_that_lead_to_themselves(place: Place) -> None:
    text = f"home = {place.prefix}/bin\nversion = 3.12.3\ninclude-system-site-packages = true\n"
    (place.prefix / "pyvenv.cfg").write_text(text)


@hostile()
def settings_of_ten_megabytes(place: Place) -> None:
    text = "home = /usr/bin\nversion = 3.12.3\n" + "key = value\n" * 900_000
    (place.prefix / "pyvenv.cfg").write_text(text)


# The packages folder.


def replaced(place: Place) -> Path:
    """Move the packages folder away and return where it was."""
    place.site.rename(place.folder / "moved")
    return place.site


@hostile("environment", always)
def packages_folder_leads_to_itself(place: Place) -> None:
    replaced(place).symlink_to("site-packages")


@hostile("environment", always)
def packages_folder_leads_nowhere(place: Place) -> None:
    replaced(place).symlink_to("/nowhere")


@hostile("environment", always)
def packages_folder_is_a_file(place: Place) -> None:
    replaced(place).write_text("")


@hostile("environment", always)
def packages_folder_is_a_fifo(place: Place) -> None:
    os.mkfifo(replaced(place))


@hostile(holds=always)
def packages_folder_is_proc(place: Place) -> None:
    replaced(place).symlink_to("/proc/self")


@hostile(holds=always)
def packages_folder_is_the_root(place: Place) -> None:
    replaced(place).symlink_to("/")


@hostile()
def packages_folder_is_moved_and_linked(place: Place) -> None:
    replaced(place).symlink_to("../../../moved")


@hostile(holds=lambda f: fine_is_there(f) and "cannot be printed" in str(f["environment"]["problems"]))
def names_that_cannot_be_printed(place: Place) -> None:
    for name in (b"\xff\xfe-1.0.dist-info", b"a\nb-1.0.dist-info", b"\x1b[2Jx-1.0.dist-info"):
        os.mkdir(os.fsencode(place.site) + b"/" + name)


@hostile(holds=packages("a" * 200))
def names_of_the_greatest_length(place: Place) -> None:
    place.install("a" * 200, "1.0")
    (place.site / ("~" * 255)).mkdir()
    (place.site / (".dist-info")).mkdir()
    (place.site / ("-.dist-info")).mkdir()


@hostile(
    holds=lambda f: (
        packages("evil0")(f) and "touch" not in json.dumps(f["environment"]["distributions"]["evil0"]["name"])
    )
)
def names_that_are_commands_or_paths(place: Place) -> None:
    for number, name in enumerate(("x; touch PWNED", "$(touch PWNED)", "../../../etc")):
        place.install(f"evil{number}", "1.0", f"Name: {name}\nVersion: `touch PWNED`\n\n")


@hostile(holds=packages("bidi"))
def names_that_turn_the_line_around(place: Place) -> None:
    place.install("bidi", "1.0", "Name: \u202egnp\nVersion: 1.0\n\n")


@hostile(holds=lambda f: len(f["environment"]["distributions"]) == 2001)
def two_thousand_packages_in_a_ring(place: Place) -> None:
    for number in range(2000):
        text = f"Name: p{number}\nVersion: 1.0\nRequires-Dist: p{(number + 1) % 2000}>=1\n\n"
        place.install(f"p{number}", "1.0", text)


@hostile(holds=lambda f: "installed twice" in str(f["environment"]["problems"]))
def one_package_many_times(place: Place) -> None:
    for number in range(50):
        place.install("fine", f"2.{number}", f"Name: fine\nVersion: 2.{number}\n\n")


# What describes a package.


@hostile("environment", packages("x"))
def metadata_is_endless(place: Place) -> None:
    info = place.install("x", "1.0")
    (info / "METADATA").unlink()
    (info / "METADATA").symlink_to("/dev/zero")


@hostile("environment", packages("x"))
def metadata_is_a_terminal(place: Place) -> None:
    info = place.install("x", "1.0")
    (info / "METADATA").unlink()
    (info / "METADATA").symlink_to("/dev/ptmx")


@hostile(holds=lambda f: "holds no METADATA" in str(f["environment"]["problems"]))
def metadata_is_missing(place: Place) -> None:
    (place.install("x", "1.0") / "METADATA").unlink()


@hostile(holds=packages("x"))
def metadata_is_empty(place: Place) -> None:
    place.install("x", "1.0", "")


@hostile(holds=packages("x"))
def metadata_of_a_gigabyte(place: Place) -> None:
    info = place.install("x", "1.0")
    with open(info / "METADATA", "r+b") as stream:
        stream.truncate(1 << 30)


@hostile()
def metadata_is_a_process(place: Place) -> None:
    info = place.install("x", "1.0")
    (info / "METADATA").unlink()
    (info / "METADATA").symlink_to("/proc/self/status")


@hostile(holds=packages("x"))
def metadata_asks_for_everything(place: Place) -> None:
    lines = "".join(f"Requires-Dist: fine{number} (>=1)\n" for number in range(5_000))
    place.install("x", "1.0", f"Name: x\nVersion: 1.0\n{lines}\n")


@hostile(holds=packages("x"))
def metadata_with_a_marker_3000_deep(place: Place) -> None:
    place.install("x", "1.0", f"Name: x\nVersion: 1.0\nRequires-Dist: fine; {'(' * 3000}a{')' * 3000}\n\n")


@hostile(holds=packages("x"))
def metadata_with_a_line_of_400_kilobytes(place: Place) -> None:
    place.install("x", "1.0", f"Name: x\nVersion: 1.0\nRequires-Dist: fine{' extra' * 80_000}\n\n")


@hostile(holds=packages("x", "y"))
def versions_of_5000_digits(place: Place) -> None:
    place.install("x", "1.0", f"Name: x\nVersion: {'9' * 5000}\n\n")
    place.install("y", "1.0", f"Name: y\nVersion: 1{'.1' * 5000}\n\n")


@hostile(holds=packages("torch", "numpy"))
def versions_that_are_none(place: Place) -> None:
    for name in ("torch", "numpy", "transformers"):
        place.install(name, "1.0", f"Name: {name}\nVersion: ../../x y\x1b[31m\n\n")


@hostile(holds=packages("x"))
def metadata_that_is_no_text(place: Place) -> None:
    place.install("x", "1.0", b"Name: x\nVersion: 1.0\nRequires-Dist: \xff\xfe\xfd\nRequires-Dist: \x00\n\n")


@hostile("environment", packages("x"))
def an_info_folder_that_leads_to_itself(place: Place) -> None:
    (place.site / "x-1.0.dist-info").symlink_to("x-1.0.dist-info")


@hostile(holds=packages("x"))
def an_info_folder_that_is_a_file(place: Place) -> None:
    (place.site / "x-1.0.dist-info").write_text("")


@hostile(holds=lambda f: "s3cr" not in json.dumps(f))
def an_origin_with_a_password(place: Place) -> None:
    info = place.install("x", "1.0")
    (info / "direct_url.json").write_text(
        '{"url": "https://user:s3cr@example.com/x.whl", "archive_info": {}}'
    )


@hostile(holds=packages("x"))
def an_origin_100000_deep(place: Place) -> None:
    (place.install("x", "1.0") / "direct_url.json").write_text("[" * 100_000)


@hostile(holds=packages("torch"))
def a_record_that_leads_out(place: Place) -> None:
    place.torch()
    record = "../../../../etc/passwd.so,,\n/etc/shadow.so,,\n" + "a" * 900_000 + ".so,,\n\x00.so,,\n"
    (place.site / "torch-2.9.0.dist-info/RECORD").write_text(record)


@hostile(holds=packages("torch"))
def a_record_of_one_line(place: Place) -> None:
    place.torch()
    (place.site / "torch-2.9.0.dist-info/RECORD").write_text(".so.1" * 200_000)


@hostile("environment")
def an_old_link_to_a_fifo(place: Place) -> None:
    (place.folder / "src/x.egg-info").mkdir(parents=True)
    os.mkfifo(place.folder / "src/x.egg-info/PKG-INFO")
    (place.site / "x.egg-link").write_text(f"{place.folder}/src\n.")


@hostile()
def an_old_link_to_everything(place: Place) -> None:
    (place.site / "x.egg-link").write_text("/\n.")
    (place.site / "y.egg-link").write_text("\x00\n.")
    (place.site / "z.egg-link").write_text("")


# What adds folders to the import path.


@hostile(holds=lambda f: fine_is_there(f) and "pwned" not in json.dumps(f))
def a_pth_file_that_runs(place: Place) -> None:
    mark = place.folder / "pwned"
    (place.site / "x.pth").write_text(f"import os; open({str(mark)!r}, 'w')\nimport\tos\n")


@hostile()
def a_pth_file_of_many_folders(place: Place) -> None:
    (place.site / "x.pth").write_text("\n".join(["/", "/proc", "/dev", ".", "..", "\x00", "~"] * 500))


@hostile()
def a_pth_file_that_leads_back(place: Place) -> None:
    (place.site / "x.pth").write_text(f"{place.site}\n{place.site}/../site-packages\n")


@hostile("environment")
def a_pth_file_that_waits(place: Place) -> None:
    os.mkfifo(place.site / "x.pth")


# How packages were built.


@hostile("environment", packages("torch"))
def a_library_without_end(place: Place) -> None:
    (place.torch() / "libc10.so").symlink_to("/dev/zero")


@hostile("libraries", packages("torch"))
def a_library_that_is_random(place: Place) -> None:
    (place.torch() / "libtorch_cuda.so").symlink_to("/dev/urandom")


def elf(headers_at: int, size: int, count: int, segments: bytes = b"") -> bytes:
    """Return an ELF file with that program header table."""
    start = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHH", 3, 62, 1, 0, headers_at, 0, 0, 64, size, count)
    )
    return start + bytes(64 - len(start)) + segments


@hostile(holds=packages("torch"))
def libraries_with_absurd_tables(place: Place) -> None:
    library = place.torch()
    huge = (1 << 64) - 1
    loads = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, huge, huge, 1)
    for name, data in {
        "libc10.so": elf(huge, 56, 65535),
        "libtorch_cuda.so": elf(64, 0, 65535),
        "libtorch_global_deps.so": elf(
            64, 56, 2, loads + struct.pack("<IIQQQQQQ", 2, 6, huge, 0, 0, huge, huge, 8)
        ),
        "libtorch_cuda_linalg.so": elf(
            64, 56, 2, loads + struct.pack("<IIQQQQQQ", 2, 6, 0, 0, 0, huge, huge, 8)
        ),
    }.items():
        (library / name).write_bytes(data)


@hostile(holds=packages("torch"))
def a_version_file_of_one_line(place: Place) -> None:
    place.torch()
    (place.site / "torch/version.py").write_text("a" * 500_000 + ":" * 500_000 + "='")


@hostile("environment", packages("xformers"))
def a_build_file_100000_deep(place: Place) -> None:
    place.install("xformers", "0.0.30")
    place.write("env/lib/python3.12/site-packages/xformers/cpp_lib.json", "[" * 100_000)


@hostile("environment", packages("xformers"))
def a_build_file_of_numbers(place: Place) -> None:
    place.install("xformers", "0.0.30")
    text = '{"version": {"cuda": ' + "9" * 5000 + ', "torch": NaN, "python": {}}, "env": [1]}'
    place.write("env/lib/python3.12/site-packages/xformers/cpp_lib.json", text)


@hostile(holds=packages("deepspeed"))
def a_build_file_of_quotes(place: Place) -> None:
    place.install("deepspeed", "0.18.0")
    text = "torch_info={" + "'a': '" * 100_000 + "\ninstalled_ops={" + "'a': True" * 50_000
    place.write("env/lib/python3.12/site-packages/deepspeed/git_version_info_installed.py", text)


@hostile(holds=packages("vllm"))
def extensions_without_number(place: Place) -> None:
    place.install("vllm", "0.20.0")
    (place.site / "vllm").mkdir()
    for number in range(3000):
        (place.site / f"vllm/_{number}.so").touch()


# conda, variables and the places around.


@hostile(holds=lambda f: f["environment"]["kind"]["value"] == "conda" and fine_is_there(f))
def records_of_conda_that_are_none(place: Place) -> None:
    (place.prefix / "pyvenv.cfg").unlink()
    (place.prefix / "lib/python3.12/os.py").touch()
    (place.prefix / "conda-meta").mkdir()
    for name in (
        "-.json",
        "a-b-c.json",
        "--.json",
        "python-9999999.1.1-x.json",
        "cuda" + "-1" * 100 + ".json",
    ):
        (place.prefix / "conda-meta" / name).touch()
    os.mkfifo(place.prefix / "conda-meta/python-3.12.3-h1_0.json")


@hostile()
def variables_of_a_megabyte(place: Place) -> None:
    place.environ |= {"CUDA_VISIBLE_DEVICES": "0," * 60_000, "NCCL_SOCKET_IFNAME": "\x1b[2J" * 1000}


@hostile()
def a_library_path_of_ten_thousand_folders(place: Place) -> None:
    os.mkfifo(place.folder / "pipe")
    folders = [f"{place.folder}/{number}" for number in range(5000)]
    place.environ["LD_LIBRARY_PATH"] = ":".join(
        [*folders, f"{place.folder}/pipe", "/proc/self/fd", "/dev", "", "x"]
    )


@hostile()
def a_python_path_of_a_thousand_folders(place: Place) -> None:
    place.environ["PYTHONPATH"] = (
        ":".join(f"{place.folder}/{number}" for number in range(1000)) + ":/dev/zero:/"
    )


@hostile()
def homes_that_are_none(place: Place) -> None:
    os.mkfifo(place.folder / "pipe")
    pipe = str(place.folder / "pipe")
    place.environ |= dict.fromkeys(("HOME", "HF_HOME", "TORCH_HOME", "TMPDIR", "XDG_CACHE_HOME"), pipe)


@hostile()
def a_toolkit_that_waits(place: Place) -> None:
    place.write("cuda/bin/nvcc", "#!/bin/sh\nsleep 1000\n", 0o755)
    os.mkfifo(place.folder / "cuda/version.json")
    (place.folder / "cuda/include").mkdir()
    (place.folder / "cuda/include/cuda.h").symlink_to("/dev/zero")
    place.environ["CUDA_HOME"] = str(place.folder / "cuda")


@hostile()
def a_toolkit_that_is_a_device(place: Place) -> None:
    place.environ |= {"CUDA_HOME": "/dev/zero", "CUDA_PATH": "/proc/self/fd/0"}


@hostile()
def programs_that_are_fifos(place: Place) -> None:
    (place.folder / "bin").mkdir()
    for name in ("nvidia-smi", "nvcc"):
        os.mkfifo(place.folder / "bin" / name)
        (place.folder / "bin" / name).chmod(0o755)
    place.environ["PATH"] = f"{place.folder}/bin"

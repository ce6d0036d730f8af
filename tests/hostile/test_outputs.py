"""`-o` harms nothing: what stands there is replaced as a file, written to as a device, or let alone."""

from __future__ import annotations

import ast
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from envdoctor import files
from envdoctor.cli import main
from envdoctor.errors import Unavailable

PACKAGE = Path(files.__file__).parent


@pytest.fixture
def call(capsys):
    """Return a function that runs a command with `-o` and returns its status and its standard error."""

    def run(output, command="rules"):
        return main([*command.split(), "-o", str(output)]), capsys.readouterr().err

    return run


def kept(path):
    found = os.lstat(path)
    return found.st_ino, found.st_mode, found.st_rdev


@pytest.fixture
def null(tmp_path):
    """A null device: our own where we may make one, for what is broken here would break the machine."""
    try:
        os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.stat(os.devnull).st_rdev)
    except PermissionError:
        return os.devnull
    return tmp_path / "null"


@pytest.mark.parametrize("command", ["rules", "memory --model qwen2.5-7b --method lora"])
def test_a_device_stays_a_device(call, null, command):
    former = kept(null)
    assert call(null, command) == (0, "")
    assert kept(null) == former


def test_a_full_device_is_said_in_one_line(call):
    assert call("/dev/full") == (3, "envdoctor: /dev/full: cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/dev/stdout", "pipe"),
        ("/dev/fd/1", "file"),
        ("/proc/self/fd/1", "socket"),
        ("/proc/thread-self/fd/1", "file"),
    ],
)
def test_an_own_descriptor_is_written_to(tmp_path, path, kind):
    words = [sys.executable, "-m", "envdoctor", "rules", "-o", path]
    if kind == "pipe":
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    elif kind == "file":
        with (tmp_path / "out").open("wb") as stream:
            stream.write(b"kept\n")
            stream.flush()
            subprocess.run(words, stdout=stream, check=True)
        text = (tmp_path / "out").read_text()
        assert text.startswith("kept\n")
        assert os.listdir(tmp_path) == ["out"]
    else:
        ours, theirs = socket.socketpair()
        with subprocess.Popen(words, stdout=theirs) as writer:
            theirs.close()
            text = b"".join(iter(lambda: ours.recv(65536), b"")).decode()
        ours.close()
        assert writer.returncode == 0
    assert "DRIVER-TOO-OLD" in text


def test_a_fifo_is_written_to(tmp_path, call):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    assert call(fifo) == (0, "")
    reader.join(10)
    assert read[0]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_fifo_without_a_reader_is_given_up(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.setattr(files, "FIFO_PATIENCE_S", 0.1)
    with pytest.raises(Unavailable, match="fifo: cannot be written"):
        files.replace_file(tmp_path / "fifo", "x")


def test_a_reader_that_leaves_is_no_error(tmp_path):
    script = (
        f"{sys.executable} -m envdoctor rules -o /dev/stdout | head -c 1 > /dev/null; exit ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_socket_stays(tmp_path, call):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        status, said = call(tmp_path / "socket")
        assert (status, said.count("\n")) == (3, 1)
        assert stat.S_ISSOCK((tmp_path / "socket").stat().st_mode)


@pytest.mark.parametrize("target", ["target", "absent"])
def test_links_are_followed(tmp_path, call, target):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "target").write_text("former")
    (tmp_path / "link").symlink_to("deep/" + target)
    (tmp_path / "link of link").symlink_to(tmp_path / "link")
    assert call(tmp_path / "link of link") == (0, "")
    assert os.readlink(tmp_path / "link") == "deep/" + target
    assert (tmp_path / "deep" / target).read_text() not in ("", "former")
    assert sorted(os.listdir(tmp_path)) == ["deep", "link", "link of link"]


def test_a_link_round_in_circles_is_one_line(tmp_path, call):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    status, said = call(tmp_path / "a")
    assert (status, said.count("\n")) == (3, 1)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755, 0o666, 0o777])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "out"
    path.write_text("former")
    path.chmod(mode)
    files.replace_file(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path, call, umask):
    former = os.umask(umask)
    try:
        assert call(tmp_path / "out") == (0, "")
    finally:
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o666 & ~umask


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_what_is_read_only_stays(tmp_path):
    (tmp_path / "out").write_text("former")
    (tmp_path / "out").chmod(0o444)
    with pytest.raises(Unavailable, match="Permission denied"):
        files.replace_file(tmp_path / "out", "new")
    assert (tmp_path / "out").read_text() == "former"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files away")
def test_a_file_keeps_its_owner(tmp_path):
    (tmp_path / "out").write_text("former")
    os.chown(tmp_path / "out", 12345, 12346)
    files.replace_file(tmp_path / "out", "new")
    found = (tmp_path / "out").stat()
    assert (found.st_uid, found.st_gid) == (12345, 12346)


def test_a_name_as_long_as_names_may_be(tmp_path):
    files.replace_file(tmp_path / ("n" * 255), "new")
    assert os.listdir(tmp_path) == ["n" * 255]
    with pytest.raises(Unavailable, match="File name too long"):
        files.replace_file(tmp_path / ("n" * 256), "new")


@pytest.mark.parametrize("path", ["none/out", "", "nul\0byte", "\udcff\udc00" * 200])
def test_an_unusable_name_is_one_error(tmp_path, path):
    with pytest.raises(Unavailable, match="cannot be written"):
        files.replace_file(tmp_path / path, "new")


# --- folders -----------------------------------------------------------------------------------------------

OLD = {"train.yaml": "old yaml", "ds.json": "old json"}
NEW = {"train.yaml": "new yaml", "ds.json": "new json", "run.sh": "new sh"}


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def failing_once_after(monkeypatch, name, calls):
    """Let the system fail once, with a full disk, after some calls."""
    real, count = getattr(os, name), iter(range(10**6))

    def call(*args, **options):
        if next(count) == calls:
            raise OSError(28, "No space left on device")
        return real(*args, **options)

    monkeypatch.setattr(os, name, call)


@pytest.mark.parametrize("name", ["fsync", "write", "replace", "rename", "link", "open"])
@pytest.mark.parametrize("calls", range(6))
@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_is_whole_or_the_old_one(tmp_path, monkeypatch, name, calls, exists):
    folder = tmp_path / "folder"
    if exists:
        files.write_folder(folder, OLD)
        (folder / "mine").write_text("mine")
    former = contents(folder) if exists else None
    failing_once_after(monkeypatch, name, calls)
    try:
        files.write_folder(folder, NEW)
        failed = False
    except Unavailable:
        failed = True
    monkeypatch.undo()
    if not failed:
        assert contents(folder) == (former or {}) | NEW
    elif exists:
        assert contents(folder) == former
    assert os.listdir(tmp_path) == (["folder"] if exists or not failed else [])


@pytest.mark.parametrize("kind", ["folder", "fifo", "read-only"])
def test_a_folder_with_what_cannot_be_replaced_stays(tmp_path, kind):
    files.write_folder(tmp_path, OLD)
    (tmp_path / "ds.json").unlink()
    if kind == "folder":
        (tmp_path / "ds.json").mkdir()
    elif kind == "fifo":
        os.mkfifo(tmp_path / "ds.json")
    else:
        (tmp_path / "ds.json").write_text("old json")
        (tmp_path / "ds.json").chmod(0o444)
        if os.geteuid() == 0:
            pytest.skip("root may write everything")
    with pytest.raises(Unavailable, match=r"ds\.json"):
        files.write_folder(tmp_path, NEW)
    assert (tmp_path / "train.yaml").read_text() == "old yaml"
    assert not (tmp_path / "run.sh").exists()


def test_links_and_modes_inside_a_folder_are_kept(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "train.yaml").symlink_to("../real")
    (tmp_path / "link").symlink_to("folder")
    files.write_folder(tmp_path / "link", NEW)
    assert (tmp_path / "real").read_text() == "new yaml"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o600


def test_profile_writes_no_folder_in_place_of_a_device(call, null):
    former = kept(null)
    status, said = call(null, "profile --model qwen2.5-0.5b --gpu A100-80GB")
    assert (status, said) == (3, f"envdoctor: {null}: cannot be written: Not a directory\n")
    assert kept(null) == former


# --- the wall ----------------------------------------------------------------------------------------------

MAKING = {"write_text", "write_bytes", "mkstemp", "replace", "rename", "symlink", "link", "truncate"}
REMOVING = {"unlink", "remove", "rmtree", "rmdir", "removedirs"}
ELSEWHERE = {
    ("smokes/scratch.py", "rename"),  # inside the folder that the run has just made
    ("smokes/scratch.py", "rmtree"),  # that folder
    ("smokes/keeper.py", "rmtree"),  # that folder, or one whose lock names it
    ("smokes/ops/adapters.py", "rmtree"),  # its own folder inside that one
    ("fleet/landing.py", "mkstemp"),  # its own file, nameless from then on
    ("fleet/landing.py", "unlink"),
    (
        "fixing/copying.py",
        "link",
    ),  # into the clone, which grows in a folder of its own beside the environment
    ("fixing/copying.py", "symlink"),
    ("fixing/carrying_out.py", "unlink"),  # of the clone alone
    ("fixing/carrying_out.py", "rmtree"),
    ("fixing/carrying_out.py", "write_bytes"),
    ("fixing/exchange.py", "rename"),  # the environment and the clone, on demand
    ("fixing/states.py", "rename"),  # the clone, in that folder
    ("fixing/states.py", "rmtree"),  # clones and states that its journal does not name
    ("fixing/states.py", "unlink"),
    ("profile/trial_entries.py", "write_text"),  # inside the trial's own folder
    ("watch/told.py", "write_text"),  # inside the folder that it has just made
    ("watch/inside.py", "rmtree"),  # the folder that it has made for the run's processes to tell into
    ("watch/recording.py", "unlink"),  # its own recordings, by the whole name that they are given
}


def calls(tree):
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def changes_files(node):
    """The name of what a call changes files with, or None."""
    if not isinstance(node.func, ast.Attribute):
        return None
    owner, name = node.func.value, node.func.attr
    module = isinstance(owner, ast.Name) and owner.id in {"os", "shutil", "tempfile"}
    named = name in {"write_text", "write_bytes", "unlink", "rmdir", "symlink_to"}
    return name if named or (module and name in MAKING | REMOVING) else None


def opens_for_writing(node):
    modes = [a.value for a in node.args[:2] if isinstance(a, ast.Constant)]
    named = getattr(node.func, "id", getattr(node.func, "attr", ""))
    return named == "open" and any(isinstance(m, str) and set(m) & set("wax+") and len(m) < 4 for m in modes)


def test_nothing_else_writes_or_removes_files():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in calls(ast.parse(path.read_text(encoding="utf-8"))):
            assert not opens_for_writing(node), path
            if (name := changes_files(node)) and path != PACKAGE / "files.py":
                found.add((path.relative_to(PACKAGE).as_posix(), name))
    assert found == ELSEWHERE

"""Archives read from afar: bombs, lies and damage are told, and nothing else is raised."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from pathlib import Path

import pytest
from fake_index import FakeIndex, sdist_bytes, wheel_bytes

from envdoctor.errors import EnvdoctorError
from envdoctor.fetch import Fetcher, TooLarge
from envdoctor.harvest import remote_archive
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.harvest.metadata import Routes, read_requirements
from envdoctor.harvest.remote_archive import BadArchive, RemoteZip, parse_directory, read_sdist_members


def remote(folder: Path, content: bytes) -> RemoteZip:
    (folder / "a.whl").write_bytes(content)
    return RemoteZip(Fetcher(), (folder / "a.whl").as_uri())


def zipped(method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_are_read_whole_or_as_a_stream(tmp_path, method):
    body = random.Random(1).randbytes(200_000)
    archive = remote(tmp_path, zipped(method, first=body, second=b"two"))
    assert archive.read("second") == b"two"
    assert archive.read("first") == body
    assert b"".join(archive.stream("first")) == body


def test_only_the_bytes_needed_are_transferred(index: FakeIndex):
    body = random.Random(1).randbytes(2_000_000)
    index.pages["/a.whl"] = ("application/zip", zipped(zipfile.ZIP_STORED, big=body, small=b"x"))
    with index.fetcher() as fetcher:
        assert RemoteZip(fetcher, f"{index.base}/a.whl").read("small") == b"x"
    assert len(index.requests) == 1


def test_a_member_that_is_not_there_is_told(tmp_path):
    with pytest.raises(BadArchive, match="has no member b"):
        remote(tmp_path, zipped(a=b"")).read("b")


def test_an_unusual_packing_is_told(tmp_path):
    with pytest.raises(BadArchive, match="packed by method 12"):
        remote(tmp_path, zipped(zipfile.ZIP_BZIP2, a=b"x")).read("a")


def test_a_bomb_is_not_unpacked(tmp_path):
    with pytest.raises(BadArchive, match="claims 20000000 bytes"):
        remote(tmp_path, zipped(a=bytes(20_000_000))).read("a")


def test_a_member_larger_than_it_says_is_damage(tmp_path):
    content = bytearray(zipped(a=bytes(1000)))
    place = content.index(b"PK\x01\x02")
    struct.pack_into("<I", content, place + 24, 10)
    with pytest.raises(BadArchive, match="damaged"):
        remote(tmp_path, bytes(content)).read("a")


def test_zip64_archives_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    archive = remote(tmp_path, zipped(a=b"x" * 1000, b=b"y" * 500, c=b"z"))
    assert (archive.read("a"), archive.read("c")) == (b"x" * 1000, b"z")


def test_a_directory_that_points_nowhere_is_told(tmp_path):
    content = bytearray(zipped(a=b"x"))
    struct.pack_into("<I", content, content.index(b"PK\x05\x06") + 16, 10_000)
    with pytest.raises(BadArchive, match="outside the file"):
        remote(tmp_path, bytes(content))


def test_a_directory_of_rubbish_is_told():
    with pytest.raises(BadArchive, match="malformed"):
        parse_directory(b"x" * 100)


def test_an_sdist_past_its_limit_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(remote_archive, "LARGEST_SDIST", 1000)
    body = random.Random(1).randbytes(50_000).decode("latin1")
    (tmp_path / "a.tar.gz").write_bytes(sdist_bytes("demo", "1.0", {"a.py": body, "PKG-INFO": ""}))
    with pytest.raises(TooLarge):
        read_sdist_members(Fetcher(), (tmp_path / "a.tar.gz").as_uri(), lambda n: "PKG" in n, bool)


def test_a_zipped_sdist_is_read_like_a_wheel(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped(**{"demo-1.0/PKG-INFO": b"Name: demo"}))
    found = read_sdist_members(Fetcher(), (tmp_path / "a.zip").as_uri(), lambda name: True, bool)
    assert found == {"demo-1.0/PKG-INFO": b"Name: demo"}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz"])
def test_damaged_archives_never_raise_anything_unforeseen(tmp_path, kind, seed):
    chance = random.Random(seed)
    whole = (
        wheel_bytes("demo", "1.0", ("torch>=1",), {"demo/a.py": b"x" * 500})
        if kind.endswith("whl")
        else sdist_bytes("demo", "1.0", {"PKG-INFO": "Name: demo\nVersion: 1.0\nRequires-Dist: a\n\n"})
    )
    path = tmp_path / kind
    for _ in range(150):
        path.write_bytes(damaged(whole, chance))
        try:
            read_requirements(Fetcher(), Routes("file:///"), "demo", [IndexFile(kind, "1.0", path.as_uri())])
        except EnvdoctorError:
            pass


def damaged(content: bytes, chance: random.Random) -> bytes:
    body = bytearray(content)
    for _ in range(chance.choice((1, 2, 8))):
        place = chance.randrange(len(body)) if body else 0
        kind = chance.random()
        if kind < 0.6:
            body[place : place + 1] = bytes([chance.randrange(256)])
        elif kind < 0.8:
            body[place : place + 4] = b"\xff\xff\xff\xff"
        else:
            del body[place : place + chance.randrange(60)]
    return bytes(body)

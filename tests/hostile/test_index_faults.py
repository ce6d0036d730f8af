"""Sixty ways in which a package index can fail or attack: each is one error, in bounded time and memory."""

from __future__ import annotations

import gc
import gzip
import json
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envdoctor.errors import EnvdoctorError
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.harvest.index_pages import read_project_page
from envdoctor.harvest.metadata import parse_metadata

SETTINGS = FetchSettings(timeout=0.5, deadline=1.5, tries=1)
MOST_MIB, MOST_S = 200, 6.0
JSON, HTML = "application/vnd.pypi.simple.v1+json", "text/html"
FILE = {"filename": "alpha-1.0-py3-none-any.whl", "url": "a.whl", "hashes": {"sha256": "0" * 64}}
Answer = Iterator[bytes]


def head(status: str = "200 OK", kind: str = JSON, length: int | None = None, *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", *more, "Connection: close"]
    lines += [f"Content-Length: {length}"] if length is not None else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(body: bytes, kind: str = JSON, *more: str, status: str = "200 OK") -> Callable[[], Answer]:
    return lambda: iter([head(status, kind, len(body), *more), body])


def page(**change: object) -> bytes:
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "alpha", "files": [FILE], **change}).encode()


def drip(first: bytes, then: bytes = b" ") -> Callable[[], Answer]:
    def answer() -> Answer:
        yield first
        for _ in range(100):
            time.sleep(0.2)
            yield then

    return answer


def forever(first: bytes, then: bytes) -> Callable[[], Answer]:
    def answer() -> Answer:
        yield first
        for _ in range(20_000):
            yield then

    return answer


def packed(layers: int) -> bytes:
    body = b"\0" * (64 << 20)
    for _ in range(layers):
        body = gzip.compress(body, 9)
    return body


def raw_deflate(body: bytes) -> bytes:
    return zlib.compress(body, 9)


FAULTS: dict[str, Callable[[], Answer]] = {
    "nothing": lambda: iter([]),
    "silence": lambda: iter([head()[:10]]) if time.sleep(3) is None else iter([]),
    "half a status line": lambda: iter([b"HTTP/1."]),
    "another protocol": lambda: iter([b"220 mail.example.com ESMTP\r\n"]),
    "HTTP/0.9": lambda: iter([b"<html>hello</html>"]),
    "a status of words": lambda: iter([b"HTTP/1.1 OK fine\r\n\r\n"]),
    "a status of 5000 digits": lambda: iter([b"HTTP/1.1 " + b"9" * 5000 + b" x\r\n\r\n"]),
    "headers without end": forever(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"a" * 8000 + b"\r\n"),
    "a header of a megabyte": lambda: iter([b"HTTP/1.1 200 OK\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n"]),
    "headers byte by byte": drip(b"HTTP/1.1 200 OK\r\n", b"a"),
    "a body byte by byte": drip(head(length=1000), b"{"),
    "a packed body byte by byte": drip(head("200 OK", JSON, 1000, "Content-Encoding: gzip"), b"\x1f"),
    "a body without end": forever(head(kind=JSON), b" " * 65_536),
    "chunks without end": forever(
        head("200 OK", JSON, None, "Transfer-Encoding: chunked"), b"10000\r\n" + b" " * 65_536 + b"\r\n"
    ),
    "a chunk of a negative size": whole(b"-5\r\nabc", JSON, "Transfer-Encoding: chunked"),
    "a chunk of a huge size": whole(b"f" * 30 + b"\r\nabc", JSON, "Transfer-Encoding: chunked"),
    "a length too long": lambda: iter([head(length=10_000), page()]),
    "a length too short": lambda: iter([head(length=5), page()]),
    "a negative length": lambda: iter([head(length=-5), page()]),
    "two lengths": lambda: iter([head("200 OK", JSON, 10, "Content-Length: 20"), page()]),
    "brotli": whole(b"\x5b\xff\xff\x03", JSON, "Content-Encoding: br"),
    "zstandard": whole(b"\x28\xb5\x2f\xfd\x00", JSON, "Content-Encoding: zstd"),
    "an unknown packing": whole(page(), JSON, "Content-Encoding: " + "x" * 4000),
    "gzip that is none": whole(page(), JSON, "Content-Encoding: gzip"),
    "half a gzip": whole(gzip.compress(page())[:-12], JSON, "Content-Encoding: gzip"),
    "moved in circles": lambda: iter([head("302 Found", JSON, 0, "Location: /simple/alpha/")]),
    "moved to a file": lambda: iter([head("302 Found", JSON, 0, "Location: file:///etc/passwd")]),
    "moved to a scheme of none": lambda: iter([head("302 Found", JSON, 0, "Location: gopher://a/")]),
    "moved with a password": lambda: iter([head("302 Found", JSON, 0, "Location: htps://u:s3cr@a/")]),
    "moved to nothing": lambda: iter([head("302 Found", JSON, 0, "Location: ")]),
    "moved to a malformed place": lambda: iter([head("302 Found", JSON, 0, "Location: http://[::1")]),
    "forbidden": whole(b"", HTML, status="403 Forbidden"),
    "a password is asked for": whole(b"", HTML, status="401 Unauthorized"),
    "too many": whole(b"", HTML, "Retry-After: 99999999999", status="429 Too Many Requests"),
    "too many, by words": whole(b"", HTML, "Retry-After: soon", status="429 Too Many Requests"),
    "too many, backwards": whole(b"", HTML, "Retry-After: -5", status="429 Too Many Requests"),
    "broken": whole(b"", HTML, status="500 Internal Server Error"),
    "a proxy's login": whole(b"<html><form>log in</form></html>", HTML),
    "no text": whole(b"\xff\xfe" * 1000, HTML),
    "deep JSON": whole(b'{"files": ' + b"[" * 200_000, JSON),
    "deep HTML": whole(b"<div>" * 200_000, HTML),
    "an open tag without end": whole(b"<a " + b"x" * 500_000, HTML),
    "a comment without end": whole(b"<!--" * 100_000, HTML),
    "JSON of NaN": whole(b'{"name": "alpha", "files": NaN}', JSON),
    "JSON of 5000 digits": whole(page()[:-1] + b', "x": ' + b"9" * 5000 + b"}", JSON),
    "a list": whole(b"[]", JSON),
    "files that are none": whole(page(files=[1, None, "x"]), JSON),
    "files of other names": whole(page(files=[{**FILE, "filename": "../../evil.whl"}]), JSON),
    "another project": whole(page(name="beta"), JSON),
    "a name of no kind": whole(page(name={}), JSON),
    "a link to a file": whole(page(files=[{**FILE, "url": "file:///etc/passwd"}]), JSON),
    "a hash of no kind": whole(page(files=[{**FILE, "hashes": "x"}]), JSON),
    "a size of no kind": whole(page(files=[{**FILE, "size": -(10**30)}]), JSON),
    "a time of no kind": whole(page(files=[{**FILE, "upload-time": "9" * 5000}]), JSON),
    "half a page": whole(page()[: len(page()) // 2], JSON),
    "not there": whole(b"", HTML, status="404 Not Found"),
    "not changed": whole(b"", HTML, status="304 Not Modified"),
}


BOMBS: dict[str, Callable[[], Callable[[], Answer]]] = {
    "gzip of zeros": lambda: whole(packed(1), JSON, "Content-Encoding: gzip"),
    "gzip in gzip": lambda: whole(packed(2), JSON, "Content-Encoding: gzip, gzip"),
    "gzip in gzip in gzip": lambda: whole(packed(3), JSON, "Content-Encoding: gzip, gzip, gzip"),
    "gzip said twice": lambda: whole(packed(1), JSON, "Content-Encoding: gzip", "Content-Encoding: gzip"),
    "gzip after gzip": lambda: whole(packed(1) * 3, JSON, "Content-Encoding: gzip"),
    "deflate of zeros": lambda: whole(raw_deflate(b"\0" * (64 << 20)), JSON, "Content-Encoding: deflate"),
}
"""Packed when their turn comes: not in every worker that collects these tests."""


class EvilIndex:
    """Answers each connection with the bytes of one fault."""

    def __init__(self) -> None:
        self.answer: Callable[[], Answer] = FAULTS["nothing"]
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/simple"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection, self.answer), daemon=True).start()

    def _one(self, connection: socket.socket, answer: Callable[[], Answer]) -> None:
        with connection:
            try:
                connection.settimeout(20)
                connection.recv(65_536)
                for part in answer():
                    connection.sendall(part)
            except OSError:
                return

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def index():
    evil = EvilIndex()
    gc.collect()
    gc.freeze()  # what other tests left is not looked through again before each fault
    yield evil
    evil.close()


def memory_mib(field: str) -> float:
    told = Path("/proc/self/status").read_text()
    return int(told.partition(f"{field}:")[2].split()[0]) / 1024


def test_there_are_sixty():
    assert len(FAULTS) + len(BOMBS) >= 60


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("fault", [*FAULTS, *BOMBS])
def test_a_faulty_index_is_one_error_in_bounds(index, fault):
    index.answer = BOMBS[fault]() if fault in BOMBS else FAULTS[fault]
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before, started = memory_mib("VmRSS"), time.monotonic()
    told = ""
    with Fetcher(SETTINGS, sleep=lambda _: None) as fetcher:
        try:
            found = read_project_page(fetcher, index.url, "alpha", None)
        except EnvdoctorError as error:
            told = str(error)
        else:
            files = found.files if found else ()
            assert all("/" not in file.filename for file in files), files
            assert all(not file.url.startswith("file:") for file in files), files
    assert "\n" not in told
    assert "s3cr" not in told
    assert memory_mib("VmHWM") - before < MOST_MIB
    assert time.monotonic() - started < MOST_S * 5, "wall time; a loaded machine is given five times as much"


def test_metadata_of_no_end_is_read_in_bounds():
    parse_metadata("Name: alpha\nVersion: 1.0\n" + "Requires-Dist: torch\n" * 20_000, "alpha", "1.0", "a")

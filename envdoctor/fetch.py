"""The only place that reaches a network: bounded, retried, ranged reads over HTTP and `file:`.

Everything read is treated as hostile: it is unpacked piece by piece and capped by what it unpacks to, a
transfer has one deadline from the first byte sent on, and no message shows the credentials of a URL.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import httpx

from envdoctor import __version__
from envdoctor.errors import InputError, Unavailable
from envdoctor.inflating import inflate
from envdoctor.inputs import MEBIBYTE, open_input
from envdoctor.probes.urls import hide_credentials, plain_url

_Answer = TypeVar("_Answer")
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})


class NotFound(Unavailable):
    """The server is there and says that this URL is not."""


class TooLarge(Unavailable):
    """The answer passed the size allowed for it."""


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How patient and how greedy a fetcher may be; times in seconds."""

    connections: int = 8
    timeout: float = 20.0
    deadline: float = 180.0
    tries: int = 4
    longest_wait: float = 60.0
    certificates: str | None = None
    proxy: str | None = None
    trusted_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """One answer: its bytes, the URL they came from, and what a later conditional request needs."""

    url: str
    body: bytes
    content_type: str = ""
    etag: str | None = None
    not_modified: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """Some bytes of a file: where they start and how long the whole file is, in bytes."""

    body: bytes
    start: int
    total: int


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for (a number or a date), or None."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError):
        return None


@dataclass(slots=True)
class Fetcher:
    """A client for one command; threads may share it. Use it as a context manager."""

    settings: FetchSettings = field(default_factory=FetchSettings)
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _clients: dict[bool, httpx.Client] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            client.close()

    def get(
        self, url: str, *, accept: str = "*/*", etag: str | None = None, cap: int = 64 * MEBIBYTE
    ) -> Fetched:
        """Return the whole of `url`; raises NotFound, TooLarge or Unavailable."""
        if url.startswith("file:"):
            return Fetched(url, _read_local(url, cap), "text/html")
        headers = {"Accept": accept} | ({"If-None-Match": etag} if etag else {})
        return self._retrying(url, lambda: self._get_once(url, headers, cap))

    def get_range(self, url: str, start: int, length: int) -> Range:
        """Return `length` bytes from `start`; a negative `start` counts from the end of the file.

        Raises NotFound, TooLarge or Unavailable; a server that ignores ranges is Unavailable.
        """
        if url.startswith("file:"):
            return _read_local_range(url, start, length)
        wanted = f"bytes={start}" if start < 0 else f"bytes={start}-{start + length - 1}"
        headers = {"Range": wanted, "Accept-Encoding": "identity"}
        return self._retrying(url, lambda: self._range_once(url, headers, start, length))

    @contextmanager
    def stream(self, url: str, start: int = 0, length: int | None = None) -> Iterator[Iterator[bytes]]:
        """Give the bytes of `url` as they come; leaving the block early stops the transfer."""
        if url.startswith("file:"):
            yield _local_chunks(url, start, length)
            return
        ranged = start > 0 or length is not None
        last = "" if length is None else start + length - 1
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-{last}"} if ranged else {})
        try:
            with self._opened(url, headers) as (response, chunks):
                if ranged and response.status_code != 206:
                    raise Unavailable(f"{plain_url(url)}: the server does not serve parts of files")
                yield chunks
        except _Again as broken:
            raise Unavailable(f"{plain_url(url)}: {broken.reason}") from None

    def _client(self, url: str) -> httpx.Client:
        trusted = httpx.URL(url).host in self.settings.trusted_hosts
        with self._lock:
            if trusted not in self._clients:
                self._clients[trusted] = _new_client(self.settings, verify=not trusted)
            return self._clients[trusted]

    def _retrying(self, url: str, read: Callable[[], _Answer]) -> _Answer:
        tries = self.settings.tries
        for attempt in range(1, tries + 1):
            try:
                return read()
            except _Again as again:
                if attempt == tries:
                    raise Unavailable(f"{plain_url(url)}: {again.reason} ({tries} tries)") from None
                wait = 0.5 * 2 ** (attempt - 1) if again.wait is None else again.wait
                if wait > self.settings.longest_wait:
                    raise Unavailable(
                        f"{plain_url(url)}: {again.reason}; the server asks to wait {wait:.0f} s"
                    ) from None
                self.sleep(wait)
        raise AssertionError("unreachable")

    @contextmanager
    def _opened(
        self, url: str, headers: dict[str, str], cap: int | None = None
    ) -> Iterator[tuple[httpx.Response, Iterator[bytes]]]:
        """Give the answer and the bytes of its body, unpacked; raises TooLarge past `cap` of them."""
        end = self.clock() + self.settings.deadline
        try:
            with closing(self._send(url, headers)) as response:
                _check_status(url, response)
                yield response, self._chunks(url, response, end, cap)
        except httpx.InvalidURL:  # its message would show a part of the URL
            raise Unavailable(f"{plain_url(url)}: not a usable URL") from None
        except (httpx.UnsupportedProtocol, httpx.TooManyRedirects) as error:
            raise Unavailable(f"{plain_url(url)}: {hide_credentials(str(error))}") from None
        except zlib.error as error:
            raise Unavailable(f"{plain_url(url)}: cannot be unpacked: {error}") from None
        except httpx.TransportError as error:
            raise _Again(hide_credentials(_transport_reason(error))) from None

    def _send(self, url: str, headers: dict[str, str]) -> httpx.Response:
        """Send a request and return the answer once its headers are there, within the deadline.

        The client's own time limits are for each read: a server that sends a byte now and then never meets
        them. So the client waits in a thread, which is left behind when the deadline passes.
        """
        answers: SimpleQueue[httpx.Response | Exception] = SimpleQueue()
        given_up = threading.Event()

        def send() -> None:
            try:
                client = self._client(url)
                response = client.send(client.build_request("GET", url, headers=headers), stream=True)
            except Exception as error:
                answers.put(error)
                return
            answers.put(response)
            if given_up.is_set():
                response.close()

        threading.Thread(target=send, name="fetch", daemon=True).start()
        try:
            answer = answers.get(timeout=self.settings.deadline)
        except Empty:
            given_up.set()
            raise self._late(url) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _chunks(self, url: str, response: httpx.Response, end: float, cap: int | None) -> Iterator[bytes]:
        seen = 0
        for chunk in _unpacked(url, response, self._raw(url, response, end)):
            seen += len(chunk)
            if cap is not None and seen > cap:
                raise TooLarge(f"{plain_url(url)}: larger than the {cap} bytes allowed")
            yield chunk

    def _raw(self, url: str, response: httpx.Response, end: float) -> Iterator[bytes]:
        """Yield the bytes as they come over the wire, however few at a time."""
        for chunk in response.iter_raw():
            if self.clock() > end:
                raise self._late(url)
            yield chunk

    def _late(self, url: str) -> Unavailable:
        return Unavailable(f"{plain_url(url)}: not finished after {self.settings.deadline:.0f} s")

    def _get_once(self, url: str, headers: dict[str, str], cap: int) -> Fetched:
        with self._opened(url, headers, cap) as (response, chunks):
            etag = response.headers.get("ETag")
            if response.status_code == 304:
                return Fetched(url, b"", etag=etag or headers.get("If-None-Match"), not_modified=True)
            body = b"".join(chunks)
            return Fetched(str(response.url), body, response.headers.get("Content-Type", ""), etag)

    def _range_once(self, url: str, headers: dict[str, str], start: int, length: int) -> Range:
        with self._opened(url, headers, length) as (response, chunks):
            if response.status_code != 206:
                raise Unavailable(f"{plain_url(url)}: the server does not serve parts of files")
            first, total = _content_range(url, response.headers.get("Content-Range", ""))
            body = b"".join(chunks)
            expected = min(length, total - first)
            if len(body) != expected:
                raise _Again(f"{len(body)} of {expected} bytes came")
            return Range(body, first, total)


def _unpacked(url: str, response: httpx.Response, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Return a body's bytes as they were before they were packed: once, and only as was asked."""
    packing = response.headers.get("Content-Encoding", "").strip().lower()
    if packing in ("", "identity"):
        return chunks
    if packing in ("gzip", "x-gzip"):
        return inflate(chunks)
    raise Unavailable(f"{plain_url(url)}: packed as {packing[:40]!r}, which was not asked for")


class _Again(Exception):
    """A failure worth another try; `wait` is what the server asked for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait = wait


def _check_status(url: str, response: httpx.Response) -> None:
    status = response.status_code
    if status in (404, 410):
        raise NotFound(f"{plain_url(url)}: not there ({status})")
    if status in RETRIED:
        raise _Again(
            f"the server answered {status}", retry_after(response.headers.get("Retry-After"), time.time())
        )
    if status not in (200, 206, 304):
        raise Unavailable(f"{plain_url(url)}: the server answered {status}")


def _transport_reason(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.RemoteProtocolError):
        return f"the transfer broke off: {error}"
    return f"cannot be reached: {error}"


def _content_range(url: str, value: str) -> tuple[int, int]:
    try:
        unit, _, rest = value.partition(" ")
        span, _, total = rest.partition("/")
        if unit != "bytes":
            raise ValueError
        return int(span.partition("-")[0]), int(total)
    except ValueError:
        raise Unavailable(f"{plain_url(url)}: an unusable Content-Range: {value[:60]!r}") from None


@cache
def _trusted_certificates(file: str | None) -> ssl.SSLContext:
    """Return the context that checks servers; made once, because reading all certificates takes a while."""
    if file is None:
        return httpx.create_ssl_context()
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        raise Unavailable(f"{file}: the certificates cannot be read: {error.strerror or error}") from None


def _new_client(settings: FetchSettings, *, verify: bool) -> httpx.Client:
    checked = _trusted_certificates(settings.certificates) if verify else False
    limits = httpx.Limits(
        max_connections=settings.connections, max_keepalive_connections=settings.connections
    )
    proxied = (
        {"all://": httpx.HTTPTransport(verify=checked, proxy=httpx.Proxy(settings.proxy), limits=limits)}
        if settings.proxy
        else None
    )
    return httpx.Client(
        verify=checked,
        timeout=httpx.Timeout(settings.timeout, pool=None),
        limits=limits,
        follow_redirects=True,
        max_redirects=5,
        headers={"User-Agent": f"envdoctor/{__version__}", "Accept-Encoding": "gzip"},
        mounts=proxied,
    )


def _local_path(url: str) -> Path:
    path = Path(unquote(urlsplit(url).path))
    return path / "index.html" if os.path.isdir(path) else path


def _read_local(url: str, cap: int) -> bytes:
    path = _local_path(url)
    if not os.path.exists(path):
        raise NotFound(f"{path}: not there")
    try:
        with open_input(path) as stream:
            body = stream.read(cap + 1)
    except (OSError, InputError) as error:
        raise Unavailable(str(error)) from None
    if len(body) > cap:
        raise TooLarge(f"{path}: larger than the {cap} bytes allowed")
    return body


def _read_local_range(url: str, start: int, length: int) -> Range:
    path = _local_path(url)
    try:
        with open_input(path) as stream:
            total = stream.seek(0, os.SEEK_END)
            first = max(0, total + start) if start < 0 else start
            stream.seek(first)
            return Range(stream.read(length), first, total)
    except (OSError, InputError) as error:
        raise Unavailable(f"{path}: {error}") from None


def _local_chunks(url: str, start: int, length: int | None) -> Iterator[bytes]:
    path, left = _local_path(url), length
    try:
        with open_input(path) as stream:
            stream.seek(start)
            while chunk := stream.read(64 * 1024 if left is None else min(left, 64 * 1024)):
                left = None if left is None else left - len(chunk)
                yield chunk
    except (OSError, InputError) as error:
        raise Unavailable(f"{path}: {error}") from None

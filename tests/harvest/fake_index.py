"""A package index on 127.0.0.1 that can be made to fail in every way that real ones do."""

from __future__ import annotations

import gzip
import hashlib
import html
import io
import json
import tarfile
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from envdoctor.fetch import Fetcher, FetchSettings


def wheel_bytes(
    name: str,
    version: str,
    requires: tuple[str, ...] = (),
    members: dict[str, bytes] | None = None,
    newline="\n",
) -> bytes:
    """A wheel whose METADATA has these Requires-Dist lines, beside further members."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in requires]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in (members or {}).items():
            archive.writestr(member, content)
        stem = f"{name.replace('-', '_')}-{version}.dist-info"
        archive.writestr(f"{stem}/METADATA", newline.join([*lines, "", "A description: with a colon"]))
        archive.writestr(f"{stem}/RECORD", "")
    return buffer.getvalue()


def sdist_bytes(name: str, version: str, members: dict[str, str]) -> bytes:
    """A .tar.gz whose members lie under NAME-VERSION/."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member, text in members.items():
            info = tarfile.TarInfo(f"{name}-{version}/{member}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


@dataclass
class FakeFile:
    filename: str
    content: bytes
    requires_python: str | None = None
    yanked: bool = False
    uploaded: str | None = "2026-01-02T03:04:05.678901Z"
    metadata: bytes | None = None
    metadata_hash: str | None = None

    def entry(self, base: str) -> dict:
        entry = {
            "filename": self.filename,
            "url": f"{base}/files/{self.filename}",
            "hashes": {"sha256": hashlib.sha256(self.content).hexdigest()},
            "requires-python": self.requires_python,
            "yanked": self.yanked,
            "upload-time": self.uploaded,
            "size": len(self.content),
        }
        if self.metadata is not None:
            digest = self.metadata_hash or hashlib.sha256(self.metadata).hexdigest()
            entry["core-metadata"] = {"sha256": digest}
        return entry


@dataclass
class Fault:
    """What a path answers instead, this many times: a status, half a body, or silence."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    truncated: bool = False
    silent: bool = False
    times: int = 1000


class FakeIndex:
    """Projects by name; `style` is how pages are written: json or html."""

    def __init__(self) -> None:
        self.projects: dict[str, dict[str, FakeFile]] = {}
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.faults: dict[str, Fault] = {}
        self.style = "json"
        self.etags = True
        self.ranges = True
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.stopped = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        self.server.handle_error = lambda request, address: None  # a client that left is no news
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{self.base}/simple"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()

    def add(self, project: str, *files: FakeFile) -> None:
        self.projects.setdefault(project, {}).update({file.filename: file for file in files})

    def add_wheel(self, name: str, version: str, *requires: str, **more) -> FakeFile:
        tag = more.pop("tag", "py3-none-any")
        content = wheel_bytes(name, version, requires, more.pop("members", None), more.pop("newline", "\n"))
        file = FakeFile(f"{name.replace('-', '_')}-{version}-{tag}.whl", content, **more)
        self.add(name, file)
        return file

    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def fetcher(self, **settings) -> Fetcher:
        chosen = {"timeout": 0.5, "tries": 2, **settings}
        return Fetcher(FetchSettings(**chosen), sleep=lambda seconds: None)

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """The content type and body of a path, None for what is not there."""
        if path in self.pages:
            return self.pages[path]
        parts = path.strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2 and parts[1] in self.projects:
            return self._page(parts[1])
        if parts[0] == "files":
            return self._file(parts[1])
        return None

    def _page(self, name: str) -> tuple[str, bytes]:
        entries = [file.entry(self.base) for file in self.projects[name].values()]
        if self.style == "json":
            page = {"meta": {"api-version": "1.1"}, "name": name, "files": entries}
            return "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()
        links = "\n".join(_link(entry) for entry in entries)
        return "text/html", f"<!DOCTYPE html>\n<html><body>\n{links}\n</body></html>".encode()

    def _file(self, filename: str) -> tuple[str, bytes] | None:
        for files in self.projects.values():
            for file in files.values():
                if filename == file.filename:
                    return "application/octet-stream", file.content
                if filename == f"{file.filename}.metadata" and file.metadata is not None:
                    return "text/plain", file.metadata
        return None


def _link(entry: dict) -> str:
    attributes = (
        f' data-requires-python="{html.escape(entry["requires-python"])}"' if entry["requires-python"] else ""
    )
    attributes += ' data-yanked="bad"' if entry["yanked"] else ""
    if "core-metadata" in entry:
        attributes += f' data-core-metadata="sha256={entry["core-metadata"]["sha256"]}"'
    href = f"{entry['url']}#sha256={entry['hashes']['sha256']}"
    return f'<a href="{href}"{attributes}>{entry["filename"]}</a><br/>'


def _handler(index: FakeIndex) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            index.requests.append((path, dict(self.headers)))
            fault = index.faults.get(path)
            if fault and fault.times > 0:
                fault.times -= 1
                return self._fail(fault, path)
            found = index.answer(path)
            if found is None:
                return self._send(404, {}, b"")
            return self._answer(*found)

        def _answer(self, kind: str, body: bytes) -> None:
            etag = f'"{hashlib.md5(body).hexdigest()}"'
            headers = {"Content-Type": kind} | ({"ETag": etag} if index.etags else {})
            if self.headers.get("If-None-Match") == etag:
                return self._send(304, headers, b"")
            wanted = self.headers.get("Range", "")
            if wanted and index.ranges:
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                start = int(first) if first else max(0, len(body) - int(last))
                end = min(len(body), int(last) + 1) if first and last else len(body)
                headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
                return self._send(206, headers, body[start:end])
            if "gzip" in self.headers.get("Accept-Encoding", "") and kind.startswith("text/html"):
                return self._send(200, {**headers, "Content-Encoding": "gzip"}, gzip.compress(body))
            return self._send(200, headers, body)

        def _fail(self, fault: Fault, path: str) -> None:
            if fault.silent:
                index.stopped.wait(5)
                self.close_connection = True
                return
            found = index.answer(path) or ("text/plain", b"")
            body = found[1] if fault.body is None else fault.body
            if fault.truncated:
                self._send(fault.status, {"Content-Type": found[0]}, body[: len(body) // 2], length=len(body))
                self.close_connection = True
                return
            self._send(fault.status, {"Content-Type": found[0], **fault.headers}, body)

        def _send(self, status: int, headers: dict[str, str], body: bytes, length: int | None = None) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

    return Handler

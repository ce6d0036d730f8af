"""How long twenty unknown packages take: `python benchmarks/lookups.py [--latency 0.02] [--packages 20]`.

A loopback index answers each request after that latency; each package has eight releases with metadata files,
and wheels whose modules are followed: each imports numpy, and a module of its own.
The first run knows nothing, the second has what was kept.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RELEASES = 8


def wheel(module: str) -> bytes:
    """Return a wheel with two modules, the first of which imports the second."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", "import numpy\nfrom .inner import work\n")
        archive.writestr(f"{module}/inner.py", "import json\n\n\ndef work(): ...\n")
    return held.getvalue()


class Index(BaseHTTPRequestHandler):
    """Any project named `unheard-N`."""

    protocol_version = "HTTP/1.1"
    latency = 0.02
    asked = 0

    def do_GET(self) -> None:
        """Answer a page or a file."""
        type(self).asked += 1
        time.sleep(self.latency)
        kind, _, rest = self.path.strip("/").partition("/")
        body = self._page(rest) if kind == "simple" and rest.startswith("unheard-") else self._file(rest)
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.end_headers()
        self.wfile.write(body)

    def _page(self, name: str) -> bytes:
        files = [
            {
                "filename": f"{name.replace('-', '_')}-1.{minor}-py3-none-any.whl",
                "url": f"/files/{name}-1.{minor}",
                "hashes": {},
                "upload-time": "2026-01-02T03:04:05Z",
                "size": 500,
                "core-metadata": True,
            }
            for minor in range(RELEASES)
        ]
        return json.dumps({"name": name, "files": files}).encode()

    def _file(self, rest: str) -> bytes:
        stem = rest.removesuffix(".metadata")
        name, _, version = stem.rpartition("-")
        if not name:
            return b""
        if stem == rest:
            return wheel(name.replace("-", "_"))
        return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: numpy\n\n".encode()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.02)
    parser.add_argument("--packages", type=int, default=20)
    args = parser.parse_args()
    Index.latency = args.latency
    server = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        names = [f"unheard-{number}" for number in range(args.packages)]
        words = [*names, "--index-url", f"http://127.0.0.1:{server.server_port}/simple", "--quiet"]
        for label, given in (("nothing unknown", ["numpy"]), ("first", words), ("kept", words)):
            before, start = Index.asked, time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-m", "envdoctor", "pin", *given, "--python-version", "3.11"],
                capture_output=True,
                check=False,
                env={**os.environ, "XDG_DATA_HOME": home},
            )
            took = time.perf_counter() - start
            print(f"{label}: {took:.2f} s, {Index.asked - before} requests, exit {done.returncode}")


if __name__ == "__main__":
    main()

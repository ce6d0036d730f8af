"""A page and a Prometheus endpoint of a run that goes on: the loopback alone unless an address is named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from envdoctor.errors import InputError
from envdoctor.watch.moment import Alarm, Moment

_METRICS = "text/plain; version=0.0.4; charset=utf-8"


def parse_address(text: str) -> tuple[str, int]:
    """Return `PORT` or `HOST:PORT` as an address; raises InputError."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or not 0 <= int(port) < 65_536:
        raise InputError(f"--listen {text}: expected PORT or HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def serve(
    address: tuple[str, int], metrics: Callable[[], str], page: Callable[[], str]
) -> ThreadingHTTPServer:
    """Answer `/metrics` and `/` in a thread until the server is closed; raises InputError."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            routes = {"/metrics": (_METRICS, metrics), "/": ("text/html; charset=utf-8", page)}
            kind, answer = routes.get(self.path.partition("?")[0], ("", None))
            if answer is None:
                self.send_error(404)
                return
            data = answer().encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    try:
        server = ThreadingHTTPServer(address, Handler)
    except OSError as error:
        raise InputError(f"--listen {address[0]}:{address[1]}: {error.strerror or error}") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def metrics_of(moment: Moment | None, alarms: list[Alarm]) -> str:
    """Return a moment in Prometheus' text format."""
    if moment is None:
        return ""
    lines = [
        *_gauge("step", "last step said", [("", moment.step)]),
        *_gauge("loss", "last loss said", [("", moment.loss)]),
        *_gauge("host_memory_bytes", "memory of the run's processes", [("", _bytes(moment.host))]),
        *_gauge("host_memory_left_bytes", "host memory that can still be had", [("", _bytes(moment.room))]),
    ]
    for name, told, field in (
        ("gpu_memory_used_bytes", "memory used on a card", "used"),
        ("gpu_memory_bytes", "memory of a card", "total"),
    ):
        values = [(f'{{gpu="{i}"}}', _bytes(getattr(c, field))) for i, c in enumerate(moment.cards)]
        lines += _gauge(name, told, values)
    util = [(f'{{gpu="{i}"}}', card.util) for i, card in enumerate(moment.cards)]
    lines += _gauge("gpu_utilization_percent", "utilisation of a card", util)
    kinds = sorted({alarm.kind for alarm in alarms})
    count = [(f'{{alarm="{kind}"}}', sum(a.kind == kind for a in alarms)) for kind in kinds]
    return "\n".join([*lines, *_gauge("alarms", "alarms so far", count)]) + "\n"


def _gauge(name: str, told: str, values: Sequence[tuple[str, float | None]]) -> list[str]:
    known = [(labels, value) for labels, value in values if value is not None]
    if not known:
        return []
    full = f"envdoctor_watch_{name}"
    head = [f"# HELP {full} {told}", f"# TYPE {full} gauge"]
    return [*head, *(f"{full}{labels} {value}" for labels, value in known)]


def _bytes(mib: int | None) -> int | None:
    return None if mib is None else mib << 20

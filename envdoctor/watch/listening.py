"""A page and a Prometheus endpoint of a run that goes on: the loopback alone unless an address is named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from envdoctor.errors import InputError
from envdoctor.watch.moment import Alarm, Link, Moment

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


def metrics_of(moment: Moment | None, alarms: Sequence[Alarm], links: Sequence[Link] = ()) -> str:
    """Return a moment, the newest links of its cards and the alarms so far in Prometheus' text format."""
    if moment is None:
        return ""
    run = [
        _metric("step", "last step said", [("", moment.step)]),
        _metric("loss", "last loss said", [("", moment.loss)]),
        _metric("host_memory_bytes", "memory of the run's processes", [("", _bytes(moment.host))]),
        _metric("host_memory_left_bytes", "host memory that can still be had", [("", _bytes(moment.room))]),
    ]
    cards = [_by_card(name, told, enumerate(moment.cards), field) for name, told, field in _OF_CARDS]
    of_links = [(link.card, link) for link in links]
    joined = [_by_card(name, told, of_links, field) for name, told, field in _OF_LINKS]
    kinds = sorted({alarm.kind for alarm in alarms})
    count = [(f'{{alarm="{kind}"}}', sum(a.kind == kind for a in alarms)) for kind in kinds]
    parts = [*run, *cards, *joined, _metric("alarms", "alarms so far", count)]
    return "\n".join(line for part in parts for line in part) + "\n"


_OF_CARDS = (
    ("memory_used_bytes", "memory used on a card", "used"),
    ("memory_bytes", "memory of a card", "total"),
    ("utilization_percent", "utilisation of a card", "util"),
    ("power_watts", "power that a card draws", "power"),
    ("clock_mhz", "clock of a card's processors", "clock"),
    ("temperature_celsius", "temperature of a card", "temperature"),
)
_OF_LINKS = (
    ("pcie_generation", "generation of a card's PCIe link", "generation"),
    ("pcie_width", "lanes of a card's PCIe link", "width"),
    ("pcie_sent_bytes_per_second", "what a card sends over PCIe", "sent"),
    ("pcie_received_bytes_per_second", "what a card receives over PCIe", "received"),
    ("pcie_replays_total", "PCIe packets repeated", "replays"),
    ("nvlink_sent_bytes_per_second", "what a card sends over NVLink", "nvlink_sent"),
    ("nvlink_received_bytes_per_second", "what a card receives over NVLink", "nvlink_received"),
    ("nvlink_errors_total", "NVLink replays and recoveries", "nvlink_errors"),
    ("ecc_corrected_total", "memory errors that ECC corrected", "ecc_corrected"),
    ("ecc_uncorrected_total", "memory errors that ECC could not correct", "ecc_uncorrected"),
)


def _by_card(name: str, told: str, cards: Iterable[tuple[int, object]], field: str) -> list[str]:
    values = [(f'{{gpu="{index}"}}', getattr(card, field)) for index, card in cards]
    in_mib = "bytes" in name
    return _metric(f"gpu_{name}", told, [(at, _bytes(value) if in_mib else value) for at, value in values])


def _metric(name: str, told: str, values: Sequence[tuple[str, float | None]]) -> list[str]:
    known = [(labels, value) for labels, value in values if value is not None]
    if not known:
        return []
    full = f"envdoctor_watch_{name}"
    kind = "counter" if name.endswith("_total") else "gauge"
    head = [f"# HELP {full} {told}", f"# TYPE {full} {kind}"]
    return [*head, *(f"{full}{labels} {value}" for labels, value in known)]


def _bytes(mib: int | None) -> int | None:
    return None if mib is None else mib << 20

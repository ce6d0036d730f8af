"""InfiniBand and RoCE ports as the kernel's verbs list them in /sys; none of their own addresses is kept."""

from __future__ import annotations

import re

from .machine import Json, Machine, observed, unknown, without_empty
from .typed import List, Optional

ROOT = "/sys/class/infiniband"
FACTS = ("ports",)
MAX_GIDS = 256


def read(machine: Machine) -> Json:
    """Return every port of every adapter; an empty list where the kernel knows of none."""
    if not machine.is_folder("/sys/class"):
        return {"ports": unknown("/sys is closed to us")}
    ports = [
        _port(machine, device, number)
        for device in machine.names(ROOT)
        for number in machine.names("%s/%s/ports" % (ROOT, device))
        if number.isdigit()
    ]
    return {"ports": observed(ports, ROOT)}


def _port(machine: Machine, device: str, number: str) -> Json:
    folder = "%s/%s/ports/%s/" % (ROOT, device, number)

    def text(name: str) -> str:
        return (machine.text(folder + name) or "").strip()

    gids = _gids(machine, folder + "gids")
    return dict(
        without_empty(
            {
                "physical_state": _word(text("phys_state")),
                "rate_gbps": parse_rate(text("rate")),
                "firmware": (machine.text("%s/%s/fw_ver" % (ROOT, device)) or "").strip(),
                "gids": len(gids),
                "subnet": gids[0][:19] if gids else None,
            }
        ),
        device=device,
        port=int(number),
        link=text("link_layer") or "unknown",
        state=_word(text("state")) or "unknown",
    )


def _word(text: str) -> str:
    """Return `ACTIVE` of `4: ACTIVE`."""
    return text.partition(":")[2].strip() or text


def parse_rate(text: str) -> Optional[float]:
    """Read `400 Gb/sec (4X NDR)` as 400.0."""
    match = re.match(r"(\d{1,5}(?:\.\d{1,3})?) Gb/sec", text)
    return float(match.group(1)) if match else None


def _gids(machine: Machine, folder: str) -> List[str]:
    """Return the addresses that are set, in the order of their table."""
    numbers = sorted(int(name) for name in machine.names(folder) if name.isdigit())[:MAX_GIDS]
    told = [(machine.text("%s/%d" % (folder, number)) or "").strip() for number in numbers]
    return [gid for gid in told if gid.strip("0:")]

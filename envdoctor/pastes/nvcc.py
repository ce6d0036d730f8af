"""`nvcc --version`."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.facts import CudaVersion, Toolkit
from envdoctor.pastes.sightings import Paste, Sighting

_RELEASE = re.compile(
    r"(?i)Cuda compilation tools, release (\d{1,2}\.\d{1,2})(?:, V(\d{1,2}\.\d{1,2}\.\d{1,4}))?"
)


def parse_nvcc(paste: Paste) -> Iterator[Sighting]:
    """Yield the toolkit that nvcc belongs to."""
    for index, line in enumerate(paste.lines):
        if "ompilation tools" in line and (match := _RELEASE.search(line)):
            paste.claimed.add(index)
            source = paste.at("nvcc --version", index)
            yield Sighting(
                "toolkit", Toolkit(CudaVersion.parse(match[1]), "nvcc", source, active=True), source
            )

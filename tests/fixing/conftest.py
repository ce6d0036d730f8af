"""Where environments are mended there is room on the disk, however full this machine's is."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def room_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks are free: a full disk is a finding of its own, which no exchange mends."""
    if not hasattr(os, "statvfs"):
        return
    told = os.statvfs

    def roomy(path: str) -> os.statvfs_result:
        size, part, blocks, _, _, *rest = told(path)
        return os.statvfs_result((size, part, blocks, blocks, blocks, *rest))

    monkeypatch.setattr(os, "statvfs", roomy)

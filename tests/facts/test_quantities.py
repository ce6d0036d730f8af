"""Sizes and counts as people write them, and what only looks like one."""

from __future__ import annotations

import pytest

from envdoctor.facts.quantities import GIB, MIB, parse_count, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("40GB", 40 * GIB),
        ("A100-SXM4-80GB", 80 * GIB),
        ("24 G", 24 * GIB),
        ("23.64 GiB", int(23.64 * GIB)),
        ("0.50 GiB reserved", GIB // 2),
        ("24576MiB", 24 * GIB),
        ("16,384 MB", 16 * GIB),
        ("1.5 TB", 1536 * GIB),
        ("512 mb", 512 * MIB),
        ("24GB (23.64 GiB)", int(23.64 * GIB)),
        ("MIG 2g.20gb", 20 * GIB),
        ("1g.10gb", 10 * GIB),
    ],
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "cuda:0", "7B", "4k", "900 GB/s", "400Gbps", "torch 2.6.0", "v1.5g.2", "GB200"]
)
def test_what_looks_like_a_size_and_is_none(text: str) -> None:
    assert parse_size(text) is None


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4096", 4096),
        ("4,096", 4096),
        ("4_096", 4096),
        ("4k", 4096),
        ("8 cards", 8),
        ("1.5", None),
        ("7B", None),
        ("", None),
    ],
)
def test_a_count_is_a_whole_number(text: str, count: int | None) -> None:
    assert parse_count(text) == count

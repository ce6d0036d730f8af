"""A card is found by PCI id, by NVML's name and by what people call it."""

from __future__ import annotations

import re

import pytest

from envdoctor.matrix import load_matrix, tables
from envdoctor.matrix.gpus import GIB, find_gpu
from envdoctor.matrix.torch_wheels import generation

MATRIX = load_matrix()


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("Tesla K80", "3.7"),
        ("Tesla K40m", "3.5"),
        ("GTX 970", "5.2"),
        ("GTX TITAN X", "5.2"),
        ("TITAN X (Pascal)", "6.1"),
        ("P100", "6.0"),
        ("GeForce GTX 1080 Ti", "6.1"),
        ("Tesla V100-DGXS-32GB", "7.0"),
        ("Quadro RTX 5000", "7.5"),
        ("RTX 2080Ti", "7.5"),
        ("GRID T4-16Q", "7.5"),
        ("A100-SXM4-80GB", "8.0"),
        ("A800", "8.0"),
        ("NVIDIA A10G", "8.6"),
        ("RTX A6000", "8.6"),
        ("NVIDIA GeForce RTX 3050 A Laptop GPU", "8.9"),
        ("RTX 5000 Ada", "8.9"),
        ("L20", "8.9"),
        ("4090", "8.9"),
        ("H20", "9.0"),
        ("H800", "9.0"),
        ("NVIDIA GH200 480GB", "9.0"),
        ("B200", "10.0"),
        ("GB200", "10.0"),
        ("NVIDIA B300 SXM6 AC", "10.3"),
        ("NVIDIA Thor", "11.0"),
        ("RTX 5090", "12.0"),
        ("RTX PRO 6000", "12.0"),
        ("DGX Spark", "12.1"),
        ("Jetson AGX Orin", "8.7"),
        ("Xavier", "7.2"),
        ("Jetson Nano", "5.3"),
    ],
)
def test_a_name_leads_to_its_capability(name: str, capability: str) -> None:
    known = find_gpu(MATRIX, name)
    assert known is not None
    assert str(known.compute_capability) == capability


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("NVIDIA A10G", 22.49),
        ("A100 40GB", 40),
        ("NVIDIA GH200 480GB", 95.58),
        ("RTX 4090 Laptop GPU", 15.99),
        ("RTX 3080 12GB", 12),
        ("V100 32G", 32),
        ("V100", None),
    ],
)
def test_memory_is_what_the_card_reports_or_the_name_says(name: str, gib: float | None) -> None:
    known = find_gpu(MATRIX, name)
    assert known is not None
    assert known.memory_bytes == (None if gib is None else int(gib * GIB))


def test_the_pci_id_outweighs_a_name_that_lies() -> None:
    known = find_gpu(MATRIX, "NVIDIA GeForce RTX 3050", "10de:28a3")
    assert known is not None
    assert str(known.compute_capability) == "8.9"


def test_no_device_id_stands_for_two_cards() -> None:
    ids = [device for row in MATRIX.rows(tables.GpuRow) for device in row.pci]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[0-9a-f]{4}", device) for device in ids)


def test_every_generation_from_kepler_to_blackwell_is_there() -> None:
    capabilities = {row.compute_capability for row in MATRIX.rows(tables.GpuRow)}
    assert {generation(MATRIX, capability) for capability in capabilities} == {
        "Kepler",
        "Maxwell",
        "Pascal",
        "Volta",
        "Turing",
        "Ampere",
        "Ada",
        "Hopper",
        "Blackwell",
    }

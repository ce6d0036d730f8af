"""Advice that was words alone has the release to install, wherever the records tell one."""

from __future__ import annotations

import pytest

from tests.rules.test_moods import diagnosed

SITE = "/v/site-packages"
WAYS = [
    (
        "torch: 2.1\nERROR: Failed building wheel for flash-attn\nERROR: Failed to build (flash-attn)",
        {"flash-attn": ">=2.3.1.post1,<=2.7.4"},
    ),
    ("torch: 2.3\nERROR: Failed building wheel for mamba-ssm\n", {"mamba-ssm": ">=2.2.6,<=2.2.6.post2"}),
    (
        "flash-attn: 1.0.7\nImportError: cannot import name 'flash_attn_qkvpacked_func' from 'flash_attn'"
        f" ({SITE}/flash_attn/__init__.py)",
        {"flash-attn": ">=2.0.9"},
    ),
    (
        "pytorch-lightning: 2.0.0\nTypeError: __init__() got an unexpected keyword argument 'gpus'",
        {"pytorch-lightning": "==1.9.5"},
    ),
    (
        "transformers: 4.46.0.dev0\ntrl: 0.12.0.dev0\n"
        "TypeError: XPOTrainer.training_step() takes 3 positional arguments but 4 were given",
        {"transformers": "==4.45.2"},
    ),
]


@pytest.mark.parametrize(("text", "pins"), WAYS)
def test_the_first_way_out_is_a_release(text: str, pins: dict[str, str]) -> None:
    assert diagnosed(text).findings[0].remedies[0].pins == pins

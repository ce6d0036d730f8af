"""A model's config.json from the Hub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envdoctor.errors import Unavailable
from envdoctor.inputs import parse_json
from envdoctor.memory.model_config import MAX_CONFIG_BYTES

HUB = "https://huggingface.co"


def fetch_config(model: str) -> Mapping[str, Any]:
    """Return the config.json of a Hub id; raises Unavailable when it cannot be had."""
    from envdoctor.fetch import Fetcher, FetchSettings

    url = f"{HUB}/{model}/resolve/main/config.json"
    with Fetcher(FetchSettings(timeout=5.0, deadline=15.0, tries=1)) as fetcher:
        body = fetcher.get(url, cap=MAX_CONFIG_BYTES).body
    try:
        data = parse_json(body)
    except ValueError:
        raise Unavailable(f"{url}: no JSON") from None
    if not isinstance(data, dict):
        raise Unavailable(f"{url}: no JSON object")
    return data

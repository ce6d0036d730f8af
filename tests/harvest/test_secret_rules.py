from __future__ import annotations

import pytest
import re2
from pattern_literals import find_literals
from secret_rules import read_rules, to_both

from envdoctor.errors import InputError
from envdoctor.matrix import load_matrix

_BETWEEN = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
_AFTER = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
RULES = rf"""
[[rules]]
id = "acme-token"
regex = '''\b(acme_(?i)[a-z0-9]{{32}}){_AFTER}'''
keywords = ["acme_"]

[[rules]]
id = "bolt-api-key"
regex = '''(?i)[\w.-]{{0,50}}?(?:bolt[_-]?io|(?-i:[Bb]olt)){_BETWEEN}([a-f0-9]{{40}}){_AFTER}'''
keywords = ["bolt"]

[[rules]]
id = "curl-auth-user"
regex = '''curl.*'''

[[rules]]
id = "shapeless"
regex = '''\b[a-z0-9]{{32}}\b'''
"""


def test_tokens_and_named_values_are_told_apart():
    rules = read_rules(RULES, "0123abc")
    assert rules["source"].endswith("/0123abc/config/gitleaks.toml")
    assert rules["formats"] == [
        {
            "id": "acme-token",
            "hints": ["acme_"],
            "pattern": "(acme_(?i:[a-z0-9]{32}))",
            "lead": 0,
            "fold": False,
            "fixed": True,
        }
    ]
    assert rules["named"] == [
        {"id": "bolt-api-key", "names": ["bolt", "bolt io"], "value": "(?i:([a-f0-9]{40}))"}
    ]
    assert rules["left_out"] == ["curl-auth-user", "shapeless"]


def test_what_is_no_rule_file_is_refused():
    with pytest.raises(InputError, match="no rules of gitleaks"):
        read_rules("[[rule]]", "0")


@pytest.mark.parametrize(
    ("pattern", "hints", "lead", "fold"),
    [
        ("gh[pousr]_[A-Z]{3}", ("gho_", "ghp_", "ghr_", "ghs_", "ghu_"), 0, False),
        ("(?:sk|rk)_live_[0-9]+", ("rk_live_", "sk_live_"), 0, False),
        ("(?i:NRAK-[a-z0-9]{27})", ("nrak-",), 0, True),
        (r"[A-Za-z0-9]{14}\.atlasv1\.[a-z]{60}", (".atlasv1.",), 14, False),
        (r"https://[a-z]+\.webhook\.example/x", (".webhook.example/x",), 128, False),
        ("[a-z0-9]{32}", (), 0, False),
    ],
)
def test_the_literals_of_a_pattern(pattern, hints, lead, fold):
    found = find_literals(pattern)
    assert (found.hints, found.fold) == (hints, fold)
    assert not hints or found.lead >= min(lead, found.lead)


def test_flags_stand_before_their_group():
    assert to_both("a(?i)b|c") == "a(?i:b|c)"
    assert to_both("(a(?i)[b)])c") == "(a(?i:[b)]))c"


def test_what_ships_names_its_source_its_license_and_is_of_re2s_subset():
    shipped = load_matrix().generated("secret-rules")
    assert "MIT License" in shipped["license"]
    assert len(shipped["formats"]) >= 100
    for row in (*shipped["formats"], *shipped["named"]):
        re2.compile(row.get("pattern") or row["value"])

"""No URL shows a user, a password or a token: not in errors, facts, variables or lock files."""

from __future__ import annotations

import itertools
import json

import pytest

from envdoctor.cli import main
from envdoctor.fetch import Fetcher
from envdoctor.probes.machine import Machine
from envdoctor.probes.reading import Probe, read_machine
from envdoctor.probes.urls import has_credentials, hide_credentials, plain_url, without_user
from envdoctor.probes.variables import select_variables

SECRET = "s3cr"
SCHEMES = ("https", "http", "htps", "git+ssh", "socks5h", "s3", "file", "HTTPS")
USERS = (
    "user:s3cr",
    "s3cr:",
    ":s3cr",
    "s3cr",
    "user:s3cr/et",
    "user:p@s3cr",
    "user:s3cr#x",
    "user:s3cr?x",
    "us%40er:s3cr%2F",
    "user:s3cr\\x",
    "__token__:s3cr",
    "user:[s3cr]",
    "user:\u0441s3cr",
)
HOSTS = ("example.com", "example.com:8443", "localhost", "[::1]:80", "10.0.0.1")
PATHS = ("", "/simple", "/simple/?a=b", "/repo.git@v1.0", "/a@b/c")
URLS = [
    f"{scheme}://{user}@{host}{path}"
    for scheme, user, host, path in itertools.product(SCHEMES, USERS, HOSTS, PATHS)
]
PLAIN = (
    "https://example.com/simple",
    "torch @ https://example.com/torch-2.9.0-py3-none-any.whl",
    "git+https://example.com/repo.git@v1.0",
    "git+https://example.com/repo@main#egg=x",
    "user@example.com wrote",
    "attention.flash@0",
    "http://example.com:8080/x",
)


def test_no_url_keeps_what_stands_before_its_host():
    for url in URLS:
        for text in (url, f"see {url}, then", f"'{url}'"):
            assert SECRET not in hide_credentials(text), text
        assert SECRET not in plain_url(url), url
        assert SECRET not in without_user(url), url
        assert has_credentials(url), url


@pytest.mark.parametrize("text", PLAIN)
def test_what_carries_none_stays(text):
    assert hide_credentials(text) == text


def test_a_variable_with_a_url_s_password_is_not_kept():
    for number, url in enumerate(URLS[::37]):
        kept, dropped = select_variables({"HF_ENDPOINT": url, f"HF_X{number}": "plain"})
        assert "HF_ENDPOINT" in dropped, url
        assert SECRET not in json.dumps(kept)


def test_whatever_a_probe_reads_goes_without_credentials():
    def tell(_):
        return {"notes": [f"Requires-Dist: x @ {url}" for url in URLS[::11]], "a": {URLS[0]: URLS[1]}}

    told = read_machine(machine=Machine(), probes=(Probe("evil", tell, 5.0, ()),))
    assert SECRET not in json.dumps(told)
    assert len(told["notes"]) == len(URLS[::11])


def test_a_probe_that_breaks_shows_none():
    def tell(_):
        raise OSError(f"cannot reach {URLS[0]}")

    told = read_machine(machine=Machine(), probes=(Probe("evil", tell, 5.0, ("host.os",)),))
    assert SECRET not in json.dumps(told)


@pytest.fixture
def impatient(monkeypatch):
    """A host that is not there is asked again at once."""
    made = Fetcher.__init__
    monkeypatch.setattr(Fetcher, "__init__", lambda self, *a, **k: made(self, *a, **k, sleep=lambda _: None))


@pytest.mark.parametrize("url", [URLS[0], *URLS[7::997]])
def test_no_command_s_error_shows_any(url, tmp_path, monkeypatch, capsys, impatient):
    monkeypatch.chdir(tmp_path)
    for name, value in {"PIP_INDEX_URL": url, "HF_ENDPOINT": url, "UV_CACHE_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    for arguments in (
        ["pin", "torch==2.9.0", "--format", "pylock", "--index-url", url],
        ["pin", f"torch @ {url}"],
        ["pin", "-r", url],
        ["memory", "--model", url, "--gpu", "H100"],
        ["diagnose", "--from", url],
        ["matrix", "update", "--store", str(tmp_path / "store"), "--index-url", url],
        ["rules", "--" + url],
        ["rules", url],
    )[:: 1 if url == URLS[0] else 3]:
        status, said = main(arguments), capsys.readouterr().err
        assert SECRET not in said, arguments
        assert (status, said.count("\n")) in ((2, 1), (3, 1)), (arguments, said)

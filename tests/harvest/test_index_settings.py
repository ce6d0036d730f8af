"""Which index is used: the call's, then what pip and uv were told, then pip's own default."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envdoctor.errors import InputError, Unavailable
from envdoctor.harvest import index_settings
from envdoctor.harvest.index_settings import IndexSettings, read_index_settings


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(index_settings, "_MACHINE_FILES", ())
    return tmp_path


def settings(home: Path, index_url: str | None = None, **environ: str) -> IndexSettings:
    return read_index_settings(
        index_url, {"HOME": str(home), "XDG_CONFIG_DIRS": str(home), **environ}, home / "prefix"
    )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_calls_own_index_comes_first(home):
    found = settings(home, "https://mine/simple/", PIP_INDEX_URL="https://pip/simple")
    assert (found.url, found.source) == ("https://mine/simple", "--index-url")


@pytest.mark.parametrize(
    ("variable", "value", "url"),
    [
        ("PIP_INDEX_URL", "https://a/simple", "https://a/simple"),
        ("UV_DEFAULT_INDEX", "corp=https://b/simple", "https://b/simple"),
        ("UV_INDEX_URL", "https://c/simple", "https://c/simple"),
    ],
)
def test_the_environment_comes_next(home, variable, value, url):
    found = settings(home, **{variable: value})
    assert (found.url, found.source) == (url, variable)


def test_pips_files_are_read_the_nearer_over_the_farther(home):
    write(home / ".config/pip/pip.conf", "[global]\nindex-url = https://user/simple\ncert = /ca.pem\n")
    assert settings(home).url == "https://user/simple"
    write(home / "prefix/pip.conf", "[install]\nindex-url = https://venv/simple\nproxy = http://proxy:1\n")
    found = settings(home)
    assert (found.url, found.source) == ("https://venv/simple", "pip's configuration")
    assert (found.certificates, found.proxy) == ("/ca.pem", "http://proxy:1")


def test_a_named_configuration_file_wins_and_devnull_silences_all(home):
    write(home / ".config/pip/pip.conf", "[global]\nindex-url = https://user/simple\n")
    write(
        home / "named.conf", "[global]\nindex-url = https://named/simple\ntrusted-host = named:8080 other\n"
    )
    found = settings(home, PIP_CONFIG_FILE=str(home / "named.conf"))
    assert (found.url, found.trusted_hosts) == ("https://named/simple", ("named", "other"))
    assert settings(home, PIP_CONFIG_FILE="/dev/null").source == "pip's default"


def test_uvs_file_is_read_after_pips(home):
    write(
        home / ".config/uv/uv.toml",
        '[[index]]\nname = "x"\nurl = "https://extra/simple"\n\n'
        '[[index]]\nurl = "https://uv/simple"\ndefault = true\n',
    )
    found = settings(home)
    assert (found.url, found.source) == ("https://uv/simple", "uv's configuration")
    assert found.extra == ("https://extra/simple",)


def test_further_indexes_are_kept_apart(home):
    found = settings(
        home, PIP_EXTRA_INDEX_URL="file:///opt/a https://b/simple", UV_INDEX="c=https://c/simple"
    )
    assert found.extra == ("file:///opt/a", "https://b/simple", "https://c/simple")


def test_without_any_setting_it_is_what_pip_has_built_in(home):
    found = settings(home)
    assert found.source == "pip's default"
    assert found.url.endswith("/simple")


def test_without_pip_there_is_no_default(home, monkeypatch):
    monkeypatch.setattr(index_settings, "_pip_sources", lambda: iter(()))
    with pytest.raises(Unavailable, match="give --index-url"):
        settings(home)


@pytest.mark.skipif(sys.platform != "linux", reason="the bundled pip's place is that of Linux")
def test_the_pip_that_python_bundles_is_asked_too(home, monkeypatch):
    pytest.importorskip("ensurepip")
    monkeypatch.setattr(index_settings, "_installed_pip", lambda: [])
    assert settings(home).url.endswith("/simple")


@pytest.mark.parametrize("url", ["ftp://x", "simple", "javascript:x"])
def test_a_useless_index_is_the_callers_mistake(home, url):
    with pytest.raises(InputError, match="neither http, https nor file"):
        settings(home, url)


def test_a_broken_configuration_file_is_named(home):
    write(home / ".config/pip/pip.conf", "index-url = x\n")
    with pytest.raises(InputError, match=r"pip\.conf"):
        settings(home)
    write(home / ".config/pip/pip.conf", "")
    write(home / ".config/uv/uv.toml", "index-url = [\n")
    with pytest.raises(InputError, match=r"uv\.toml"):
        settings(home)

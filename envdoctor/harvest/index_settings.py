"""Which package index this machine uses: the call's own, then what pip and uv are set up with.

Order: `--index-url`; `PIP_INDEX_URL`, `UV_DEFAULT_INDEX`, `UV_INDEX_URL`; pip's configuration files (the
environment's, the user's, the machine's); uv's (`uv.toml`); and last the default that the installed pip has
built in. No host is written here.
"""

from __future__ import annotations

import configparser
import importlib.util
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError, Unavailable
from envdoctor.inputs import read_input_text
from envdoctor.toml_text import parse_toml

_MACHINE_FILES = (Path("/etc/pip.conf"),)
_PIP_SOURCE = "pip/_internal/models/index.py"
_BUILT_IN = re.compile(r'^PyPI\s*=\s*PackageIndex\(\s*"(https://[^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The main index, the further ones, and how its server is trusted; `source` says who set the index."""

    url: str
    source: str
    extra: tuple[str, ...] = ()
    certificates: str | None = None
    proxy: str | None = None
    trusted_hosts: tuple[str, ...] = ()


def read_index_settings(
    index_url: str | None = None,
    environ: Mapping[str, str] | None = None,
    prefix: Path | None = None,
) -> IndexSettings:
    """Return the settings of this machine; raises InputError or Unavailable."""
    environ = os.environ if environ is None else environ
    pip = read_pip_options(pip_config_files(environ, prefix or Path(sys.prefix)), environ)
    uv = _read_uv_options(uv_config_files(environ))
    url, source = _chosen_index(index_url, environ, pip, uv)
    return IndexSettings(
        url=_checked_url(url, source),
        source=source,
        extra=_extra_indexes(environ, pip, uv),
        certificates=pip.get("cert") or environ.get("SSL_CERT_FILE") or environ.get("REQUESTS_CA_BUNDLE"),
        proxy=pip.get("proxy"),
        trusted_hosts=tuple(host.partition(":")[0] for host in pip.get("trusted-host", "").split()),
    )


def pip_config_files(environ: Mapping[str, str], prefix: Path) -> list[Path]:
    """Return the files that pip would read, weakest first."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = Path(environ.get("HOME", "/nonexistent"))
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    machine = [
        Path(part) / "pip" / "pip.conf" for part in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
    ]
    return [
        *machine,
        *_MACHINE_FILES,
        home / ".pip" / "pip.conf",
        config / "pip" / "pip.conf",
        prefix / "pip.conf",
        *([Path(named)] if named else []),
    ]


def read_pip_options(files: Iterable[Path], environ: Mapping[str, str]) -> dict[str, str]:
    """Return pip's options by name, `[install]` over `[global]`, the environment over all files."""
    options: dict[str, str] = {}
    for path in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(read_input_text(path))
        except InputError:
            continue
        except configparser.Error as error:
            raise InputError(f"{path}: {str(error).splitlines()[0]}") from None
        for section in ("global", "install"):
            if parser.has_section(section):
                options.update(parser.items(section))
    prefix = "PIP_"
    options.update(
        {
            name[len(prefix) :].lower().replace("_", "-"): value
            for name, value in environ.items()
            if name.startswith(prefix) and value
        }
    )
    return options


def uv_config_files(environ: Mapping[str, str]) -> list[Path]:
    """Return uv's configuration files, weakest first."""
    if named := environ.get("UV_CONFIG_FILE"):
        return [Path(named)]
    home = Path(environ.get("HOME", "/nonexistent"))
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return [Path("/etc/uv/uv.toml"), config / "uv" / "uv.toml"]


def _read_uv_options(files: Iterable[Path]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for path in files:
        try:
            options.update(parse_toml(read_input_text(path)))
        except InputError:
            continue
        except ValueError as error:
            raise InputError(f"{path}: {error}") from None
    return options


def _chosen_index(
    index_url: str | None, environ: Mapping[str, str], pip: Mapping[str, str], uv: Mapping[str, Any]
) -> tuple[str, str]:
    uv_default = _uv_indexes(uv, default=True)
    candidates = [
        (index_url, "--index-url"),
        (environ.get("PIP_INDEX_URL"), "PIP_INDEX_URL"),
        (environ.get("UV_DEFAULT_INDEX"), "UV_DEFAULT_INDEX"),
        (environ.get("UV_INDEX_URL"), "UV_INDEX_URL"),
        (pip.get("index-url"), "pip's configuration"),
        (uv_default[0] if uv_default else None, "uv's configuration"),
        (_table(uv, "pip").get("index-url") or uv.get("index-url"), "uv's configuration"),
    ]
    for url, source in candidates:
        if url:
            return _unnamed(str(url)), source
    return _built_in_index(), "pip's default"


def _unnamed(url: str) -> str:
    """Return uv's `name=url` without the name."""
    name, equals, rest = url.partition("=")
    return rest if equals and re.fullmatch(r"[\w.-]+", name) else url


def _table(options: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = options.get(name)
    return value if isinstance(value, dict) else {}


def _uv_indexes(uv: Mapping[str, Any], *, default: bool) -> list[str]:
    entries = uv.get("index")
    listed = [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
    return [str(e["url"]) for e in listed if "url" in e and bool(e.get("default")) is default]


def _extra_indexes(
    environ: Mapping[str, str], pip: Mapping[str, str], uv: Mapping[str, Any]
) -> tuple[str, ...]:
    named = [
        *pip.get("extra-index-url", "").split(),
        *environ.get("UV_INDEX", "").split(),
        *environ.get("UV_EXTRA_INDEX_URL", "").split(),
        *_uv_indexes(uv, default=False),
    ]
    return tuple(dict.fromkeys(_unnamed(url) for url in named))


def _checked_url(url: str, source: str) -> str:
    if not re.match(r"(https?|file)://", url):
        raise InputError(f"{source}: the index {url[:80]!r} is neither http, https nor file")
    return url.rstrip("/")


def _built_in_index() -> str:
    """Return the index that pip uses by default, read from its source without importing it."""
    for text in _pip_sources():
        if match := _BUILT_IN.search(text):
            return f"{match.group(1).rstrip('/')}/simple"
    raise Unavailable("no package index is known: pip is not installed here; give --index-url")


def _pip_sources() -> Iterator[str]:
    for path in _installed_pip():
        try:
            yield read_input_text(path)
        except InputError:
            continue
    for wheel in _bundled_pip():
        try:
            with zipfile.ZipFile(wheel) as archive:
                yield archive.read(_PIP_SOURCE).decode("utf-8")
        except (OSError, KeyError, zipfile.BadZipFile, UnicodeDecodeError):
            continue


def _installed_pip() -> list[Path]:
    spec = importlib.util.find_spec("pip")
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return [Path(folder).parent / _PIP_SOURCE for folder in folders]


def _bundled_pip() -> list[Path]:
    spec = importlib.util.find_spec("ensurepip")
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return [wheel for folder in folders for wheel in sorted(Path(folder).glob("_bundled/pip-*.whl"))]

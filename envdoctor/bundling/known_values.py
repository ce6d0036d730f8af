"""The values that must not leave because this machine holds them: read locally, replaced wherever they
occur.
"""

from __future__ import annotations

import base64
import configparser
import getpass
import html
import json
import netrc
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

from envdoctor.bundling.hosts import COMMON_HOSTS
from envdoctor.bundling.secret_values import is_placeholder
from envdoctor.bundling.users import COMMON_ACCOUNTS

_SECRET_NAME = re.compile(
    r"(?i)token|secret|passw|passphrase|api_?key|access_?key|private_?key|credential|_key$|"
    r"_pat$|_pwd$|_pass$|"
    r"_auth$|cookie|signature|_dsn$|webhook|connection_string|license"
)
_PUBLIC_NAME = re.compile(
    r"(?i)tokeniz|tokens_|token_?ids|"
    r"(?:file|path|dir|sock|socket|home|prefix|host|port|url|parallelism|expiry|expires)$"
)
_USERINFO = re.compile(r"://([^\s/@:]{0,200}):([^\s/@]{1,400})@")
_FILE_LIMIT = 1 << 20
_INI_FILES = (
    *(".aws/credentials", ".pypirc", ".config/pip/pip.conf", ".pip/pip.conf", "/etc/pip.conf"),
    *(".config/wandb/settings", ".ngc/config", ".cometml/config", ".comet.config"),
)
_OTHER_FILES = (
    *(".kaggle/kaggle.json", ".docker/config.json", ".modal.toml", ".condarc", ".git-credentials", ".npmrc"),
    *(".config/gcloud/application_default_credentials.json", ".modelscope/credentials/git_token"),
    *(".config/uv/uv.toml", ".config/gh/hosts.yml"),
)
"""Files below a home, of sections and of other forms."""


@dataclass(frozen=True, slots=True)
class KnownValues:
    """Exact strings that this machine holds: secrets, and the names of its users, homes and hosts."""

    secrets: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def read_known_values(variables: Mapping[str, str] | None = None, home: Path | None = None) -> KnownValues:
    """Read the secrets of secret-like variables, netrc, the hub's, pip's, wandb's and the clouds' files.

    What cannot be read is passed over: a file that is not there holds nothing.
    """
    variables = os.environ if variables is None else variables
    home = Path(variables.get("HOME") or Path.home()) if home is None else home
    secrets = {*_variable_secrets(variables), *_file_secrets(variables, home)}
    return KnownValues(
        tuple(sorted(s for s in secrets if is_worth_hiding(s))),
        tuple(sorted(_users(variables))),
        tuple(sorted({str(home), variables.get("HOME", "")} - {"", "/", "/root"})),
        tuple(sorted(_hosts())),
    )


def is_secret_name(name: str) -> bool:
    """True for a variable whose value is likely a secret: `HF_TOKEN`, not `TOKENIZERS_PARALLELISM`."""
    return bool(_SECRET_NAME.search(name)) and not _PUBLIC_NAME.search(name)


def is_worth_hiding(value: str) -> bool:
    """True for a value long and odd enough that replacing it everywhere hides it and nothing else."""
    if len(value) < 5 or len(value) > 8192 or is_placeholder(value):
        return False
    return not (value.isdigit() and len(value) < 10) and not (len(value) < 8 and value.isalpha())


def encodings(value: str) -> list[str]:
    """Return `value` and the forms it takes in URLs, JSON, HTML, hexadecimal and base64, longest first."""
    raw = value.encode("utf-8", "surrogateescape")
    forms = {value, quote(raw, safe=""), quote(raw), quote_plus(raw), quote(raw, safe="").lower()}
    forms |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], html.escape(value)}
    forms |= {repr(value)[1:-1], value.replace("/", "\\/"), raw.hex()}
    return sorted((f for f in forms if len(f) >= 5), key=lambda f: (-len(f), f))


def base64_cores(value: str) -> list[str]:
    """Return what base64 of any text that holds `value` contains.

    The same bytes encode in three ways, by their offset modulo 3; the characters at both ends that depend on
    the neighbours are left off.
    """
    raw = value.encode("utf-8", "surrogateescape")
    cores = set()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for skipped in range(3):
            usable = raw[skipped:]
            core = encode(usable[: len(usable) - len(usable) % 3]).decode()
            if len(core) >= 8:
                cores.add(core)
    return sorted(cores, key=lambda f: (-len(f), f))


def _variable_secrets(variables: Mapping[str, str]) -> Iterator[str]:
    for name, value in variables.items():
        if is_secret_name(name) and not _is_existing_path(value):
            yield value.strip()
        yield from _credentials_in(value)


def _is_existing_path(value: str) -> bool:
    return value.startswith(("/", "~")) and len(value) < 1024 and os.path.exists(os.path.expanduser(value))


def _credentials_in(text: str) -> Iterator[str]:
    for user, password in _USERINFO.findall(text):
        yield password
        yield unquote(password)
        if len(user) >= 16:
            yield user


def _file_secrets(variables: Mapping[str, str], home: Path) -> Iterator[str]:
    hub = Path(variables.get("HF_HOME") or home / ".cache/huggingface")
    for path in (Path(variables.get("HF_TOKEN_PATH") or hub / "token"), home / ".huggingface/token"):
        yield _read(path).strip()
    told = Path(variables.get("PIP_CONFIG_FILE") or os.devnull)
    for path in (hub / "stored_tokens", told, *(home / name for name in _INI_FILES)):
        yield from _ini_secrets(_read(path))
    yield from _netrc_secrets(Path(variables.get("NETRC") or home / ".netrc"))
    for name in _OTHER_FILES:
        yield from _loose_secrets(_read(home / name))


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_FILE_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def _ini_secrets(text: str) -> Iterator[str]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        yield from _loose_secrets(text)
        return
    for section in parser.sections():
        for name, value in parser.items(section):
            if value and (is_secret_name(name) or name in ("apikey", "key")):
                yield value.strip()
            yield from _credentials_in(value or "")


_LOOSE = re.compile(
    r"(?i)(?:token|secret|password|key|auth)[a-z_]{0,16}[\"']?\s{0,4}[:=]\s{0,4}[\"']?([^\s\"',}]{5,})"
)


def _loose_secrets(text: str) -> Iterator[str]:
    yield from _LOOSE.findall(text)
    yield from _credentials_in(text)
    yield from re.findall(r"/t/([A-Za-z0-9-]{8,80})/", text)


def _netrc_secrets(path: Path) -> Iterator[str]:
    try:
        entries: Iterable[tuple[str, str, str]] = netrc.netrc(str(path)).hosts.values()
    except (OSError, netrc.NetrcParseError, ValueError):
        yield from re.findall(r"password\s+(\S{5,})", _read(path))
        return
    for _, _, password in entries:
        yield password or ""


def _users(variables: Mapping[str, str]) -> set[str]:
    names = {variables.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")}
    try:
        names.add(getpass.getuser())
    except (OSError, KeyError, ImportError):
        pass
    return {name for name in names if len(name) > 1 and name.lower() not in COMMON_ACCOUNTS}


def _hosts() -> set[str]:
    full = socket.gethostname()
    names = {full, full.partition(".")[0]}
    return {name for name in names if len(name) > 2 and name.lower() not in COMMON_HOSTS}

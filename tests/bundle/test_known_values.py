from __future__ import annotations

import json

import pytest

from envdoctor.bundling import Redactor
from envdoctor.bundling.known_values import KnownValues, is_secret_name, is_worth_hiding, read_known_values

FILES = {
    ".netrc": "machine api.wandb.ai\n  login user\n  password netrc-secret-value-1\n",
    ".cache/huggingface/token": "hub-token-value-2\n",
    ".huggingface/token": "former-token-value-11\n",
    ".cache/huggingface/stored_tokens": "[work]\nhf_token = stored-token-value-3\n",
    ".config/pip/pip.conf": "[global]\nindex-url = https://bob:pip-secret-4@example.com/simple\n",
    ".config/wandb/settings": "[default]\napi_key = wandb-secret-value-5\n",
    ".aws/credentials": "[default]\naws_secret_access_key = aws-secret-value-6\n",
    ".kaggle/kaggle.json": json.dumps({"username": "x", "key": "kaggle-secret-value-7"}),
    ".git-credentials": "https://me:git-secret-value-8@github.com\n",
    ".condarc": "channels:\n  - https://conda.example.com/t/conda-secret-9/main\n",
    ".docker/config.json": json.dumps({"auths": {"ghcr.io": {"auth": "docker-secret-value-10"}}}),
}


@pytest.fixture
def home(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


HELD = """
netrc-secret-value-1 hub-token-value-2 stored-token-value-3 pip-secret-4
wandb-secret-value-5 aws-secret-value-6
kaggle-secret-value-7 git-secret-value-8 conda-secret-9 docker-secret-value-10
former-token-value-11
"""


def test_the_secrets_of_files_are_read(home):
    assert set(HELD.split()) <= set(read_known_values({}, home).secrets)


ELSEWHERE = {
    "sections": (".pypirc", ".pip/pip.conf", ".ngc/config", ".cometml/config", ".comet.config"),
    "lines": (
        *(".modal.toml", ".npmrc", ".config/uv/uv.toml", ".config/gh/hosts.yml"),
        *(".config/gcloud/application_default_credentials.json", ".modelscope/credentials/git_token"),
    ),
}


@pytest.mark.parametrize("name", [*ELSEWHERE["sections"], *ELSEWHERE["lines"]])
def test_each_file_that_holds_secrets_is_read(name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    section = "[any]\n" if name in ELSEWHERE["sections"] else ""
    path.write_text(f"{section}password = file-secret-1\nplain = http://u:url-secret-2@example.com\n")
    assert read_known_values({}, tmp_path).secrets == ("file-secret-1", "url-secret-2")


@pytest.mark.parametrize(
    ("variable", "name", "text"),
    [
        ("HF_HOME", "there/token", "moved-secret-1\n"),
        ("HF_HOME", "there/stored_tokens", "[a]\nhf_token = moved-secret-1\n"),
        ("HF_TOKEN_PATH", "there", " moved-secret-1 "),
        ("PIP_CONFIG_FILE", "there", "[a]\nkey = moved-secret-1\nother = plain-1\n"),
        ("PIP_CONFIG_FILE", "there", "no section\ntoken: moved-secret-1\n/t/ab-cdef/x"),
        ("NETRC", "there", "machine x login y password moved-secret-1"),
        ("NETRC", "there", "broken\npassword moved-secret-1\npassword 1234"),
    ],
)
def test_files_are_read_where_a_variable_says(variable, name, text, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert read_known_values({variable: str(tmp_path / "there")}, tmp_path).secrets == ("moved-secret-1",)


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        *(("a1b2", False), ("a1b2c", True), ("abcdefg", False), ("abcdefgh", True)),
        *(("123456789", False), ("1234567890", True), ("a1" * 4096, True), (f"{'a1' * 4096}b", False)),
    ],
)
def test_what_is_worth_hiding_is_long_or_odd(value, hidden):
    assert is_worth_hiding(value) is hidden


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("https://joe:pa%2Fss-1@x", ("pa%2Fss-1", "pa/ss-1")),
        (f"https://{'u1' * 8}:pass-1@x https://{'v1' * 7}x:pass-1@x", ("pass-1", "u1" * 8)),
        ("https://joe:pass-1", ()),
    ],
)
def test_the_credentials_of_addresses_are_read(value, found, tmp_path):
    assert read_known_values({"PROXY": value}, tmp_path).secrets == found


def test_a_path_that_is_there_is_no_secret(tmp_path):
    (tmp_path / "key").write_text("")
    variables = {"A_TOKEN": str(tmp_path / "key"), "B_TOKEN": str(tmp_path / "none")}
    assert read_known_values(variables, tmp_path).secrets == (str(tmp_path / "none"),)


@pytest.mark.parametrize(
    ("host", "hosts"),
    [
        ("zeus.example.org", ("zeus", "zeus.example.org")),
        ("ab", ()),
        ("abc", ("abc",)),
        ("localhost", ()),
        ("gpu.example.org", ("gpu.example.org",)),
    ],
)
def test_this_machines_names_are_known(host, hosts, tmp_path, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: host)
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    known = read_known_values({"USER": "x", "LOGNAME": "xy", "SUDO_USER": "Root", "HOME": "/root"}, tmp_path)
    assert known.hosts == hosts
    assert known.users == ("xy",)
    assert known.homes == (str(tmp_path),)


def test_the_secrets_of_variables_are_read(tmp_path):
    variables = {
        "HF_TOKEN": "abcdef-hf",
        "MY_DB_PASSWORD": "s3cr3t!",
        "HTTPS_PROXY": "http://joe:pr0xypass@proxy:3128",
        "TOKENIZERS_PARALLELISM": "false",
        "SSH_AUTH_SOCK": "/tmp/ssh-x/agent.1",
        "AWS_SHARED_CREDENTIALS_FILE": "/root/.aws/credentials",
        "PATH": "/usr/bin:/bin",
        "API_KEY": "none",
    }
    assert read_known_values(variables, tmp_path).secrets == ("abcdef-hf", "pr0xypass", "s3cr3t!")


def test_files_that_are_missing_folders_or_rubbish_hold_nothing(tmp_path):
    (tmp_path / ".netrc").mkdir()
    (tmp_path / ".pypirc").write_bytes(b"\xff\x00[[[\npassword: x")
    assert read_known_values({}, tmp_path).secrets == ()


def test_what_was_read_is_replaced_everywhere(home):
    redactor = Redactor(read_known_values({"HOME": str(home)}, home))
    for text in FILES.values():
        shown = redactor.redact(text)
        assert "-secret-" not in shown
        assert "-token-value-" not in shown


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "aws_secret_access_key", "GITHUB_PAT", "DB_PASSWORD"]
)
def test_secret_names(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "HF_TOKEN_PATH", "PATH", "KEYBOARD", "SSH_AUTH_SOCK"]
)
def test_other_names(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize("value", ["", "true", "none", "1234", "abc", "12345", "${HF_TOKEN}", "test"])
def test_everyday_values_are_not_hidden(value):
    assert not is_worth_hiding(value)


def test_user_and_home_are_known(tmp_path):
    known = read_known_values({"USER": "marianne", "HOME": "/tank/folk/marianne"}, tmp_path)
    redactor = Redactor(known)
    assert redactor.redact("marianne wrote /srv/x") == "<user-1> wrote /srv/x"
    assert "/tank/folk" not in redactor.redact("/tank/folk/marianne/x")


def test_a_value_that_is_no_text_is_hidden_as_well():
    held = "no-utf8-\udcff-secret-value"
    redactor = Redactor(KnownValues(secrets=(held,)))
    assert "secret-value" not in redactor.redact(f"the token is {held}")

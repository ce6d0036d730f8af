from __future__ import annotations

import json

import pytest

from envdoctor.bundling import Redactor
from envdoctor.bundling.known_values import KnownValues, is_secret_name, is_worth_hiding, read_known_values

FILES = {
    ".netrc": "machine api.wandb.ai\n  login user\n  password netrc-secret-value-1\n",
    ".cache/huggingface/token": "hub-token-value-2\n",
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
"""


def test_the_secrets_of_files_are_read(home):
    assert set(HELD.split()) <= set(read_known_values({}, home).secrets)


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

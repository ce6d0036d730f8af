"""The forms that people met: one example each, with values drawn anew, so that none is a real secret."""

from __future__ import annotations

import base64
import random
from urllib.parse import quote

import pytest
from pattern_draws import draw

from envdoctor.bundling import Redactor
from envdoctor.bundling.known_values import KnownValues
from envdoctor.bundling.secret_formats import load_formats


def redacted(text: str) -> str:
    redactor = Redactor()
    redactor.learn(text)
    return redactor.redact(text)


V = draw("[A-Za-z0-9]{32}", random.Random(11))[0]
B64 = base64.b64encode(f"user:{V}".encode()).decode()
IN_QUOTES = V.replace("/", "")
FORMS = {
    "assignment to os.environ": f'os.environ["ACME_KEY"] = "{V}"',
    "a table's cell": f"| acme_key | {V} | eu |",
    "an aligned colon": f"api_key          : {V}",
    "dotted leaders": f"acme_token ........................ {V}",
    "JSON in JSON": f'{{"log": "{{\\"acme_key\\": \\"{V}\\"}}"}}',
    "JSON in JSON in JSON": f'"{{\\"log\\": \\"{{\\\\\\"acme_key\\\\\\": \\\\\\"{V}\\\\\\"}}\\"}}"',
    "XML": f"<config><acmeKey>{V}</acmeKey></config>",
    "YAML on the next line": f"acme_key:\n  {V}\nbatch: 4",
    "a full-width colon": f"API key：{V}",
    "a no-break space": f"API key\u00a0:\u00a0{V}",
    "docker's auth": f'{{"auths": {{"ghcr.io": {{"auth": "{B64}"}}}}}}',
    "the refused key": f"Incorrect API key provided: {V}. You can find your API key at https://example.com.",
    "Chinese": f"密钥：{V}",
    "Russian": f"Пароль: {V}",
    "German": f"Zugriffsschlüssel = {V}",
    "French": f"Mot de passe : {V}",
    "Spanish": f"Contraseña: {V}",
    "Japanese": f"パスワード：{V}",
    "Korean": f"비밀번호: {V}",
    "wrapped at 80 columns": f"INFO {'.' * 50} ACME_KEY={V[:16]}\n{V[16:]} and more",
    "colours inside": f"ACME_KEY={V[:16]}\x1b[1m{V[16:]}\x1b[0m",
    "a box of Rich": f"╭{'─' * 36}╮\n│ found ACME_KEY={V[:19]} │\n│ {V[19:]:<34} │\n╰{'─' * 36}╯",
    "a log-in's second argument": f"smtp.login('bot@example.com', '{V}')",
    "Terraform": f'variable "acme_key" {{\n  default = "{V}"\n}}',
    "percent signs": f"cb=https%3A%2F%2Fexample.com%3Facme_key%3D{quote(V, safe='')}%26x%3D1",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_found_in_every_form(form):
    shown = redacted(FORMS[form])
    assert [V[i : i + 8] for i in range(len(V) - 7) if V[i : i + 8] in shown] == []
    assert B64[8:] not in shown


def test_base64_of_an_assignment_is_found():
    encoded = base64.b64encode(f"REGION=eu\nACME_KEY={V}\n".encode()).decode()
    assert encoded[20:40] not in redacted(f'user_data = "{encoded}"')


BARE = """
slack-token discord-token feishu-token wecom-webhook teams-webhook azure-key siliconflow-key lambda-key
elevenlabs-key voyage-key baidu-key tailscale-key gitlab-token bitbucket-token supabase-token 1password-token
aws-bedrock-key doppler-token
prefect-token conda-token
"""


@pytest.mark.parametrize("kind", BARE.split())
def test_a_token_of_the_field_is_found_with_nothing_beside_it(kind):
    r = random.Random(kind)
    patterns = [entry.pattern for entry in load_formats() if entry.kind == kind]
    assert patterns
    for pattern in patterns:
        whole, value = draw(pattern, r)
        assert value not in redacted(f"the server answered {whole} and closed")


USERS = [
    r"\\fs01\users\{}\ckpt",
    "/scratch/{}/llm/train.py",
    "/data/{}/envs/llm/bin/python",
    "/lustre/{}/run7/out.log",
    "/nethome/{}/.bashrc: line 3",
    "  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
    "   4711       gpu    train {:>8}  R      10:11      1 gpu-07",
    "USER         PID %CPU %MEM COMMAND\n{:<12} 312 99.0  2.1 python train.py",
]


@pytest.mark.parametrize("line", USERS)
def test_an_account_is_found(line):
    assert "mkowalsk" not in redacted(line.format("mkowalsk"))


@pytest.mark.parametrize("name", ["иван", "王伟", "김철수", "José", "محمد"])
def test_an_account_of_any_script_is_found(name):
    assert name not in redacted(f'File "/home/{name}/train.py", line 3')


HOSTS = [
    "  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
    "   4711       gpu    train    root  R      10:11      1 gpu-zeta07",
    "Nov 20 10:11:12 gpu-zeta07 kernel: NVRM: Xid (PCI:0000:3b:00): 79",
    "gpu-zeta07 slots=8\n",
    "gpu-zeta07: [2026-11-20 10:11:12] [INFO] [runner.py:568:main] cmd = python",
]


@pytest.mark.parametrize("line", HOSTS)
def test_a_host_is_found(line):
    assert "zeta07" not in redacted(line)


NUMBERS = {
    "Amazon's host": ("connected to ip-10-11-12-13", "10-11-12-13"),
    "MAC with colons": ("link/ether 3c:ec:ef:12:34:56 brd", "12:34:56"),
    "MAC with hyphens": ("Physical Address: 3C-EC-EF-12-34-56", "12-34-56"),
    "MAC of Cisco's": ("mac 3cec.ef12.3456 dynamic", "ef12.3456"),
    "MAC without marks": ("MAC address: 3cecef123456", "ef123456"),
    "InfiniBand GUID": ("node guid: 0x506b4b0300ab12cd", "00ab12cd"),
    "GPU's serial": ("    Serial Number                         : 1654922012345", "22012345"),
    "disk's serial": ("ID_SERIAL_SHORT=S4EVNX0R123456", "R123456"),
    "machine id": ("machine-id: 3f2a9d44c1e0b7aa2f2a9d44c1e0b7ab", "c1e0b7aa"),
    "SSH key": (f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{V}abcdefghijk x@y", V),
    "cloud account": ("arn:aws:iam::123412341234:role/train", "123412341234"),
    "tenant": ("AZURE_TENANT_ID=3f2a9d44-c1e0-b7aa-2f2a-9d44c1e0b7ab", "9d44c1e0b7ab"),
    "bucket": ("s3://zeta-llm-ckpt-9/step-100", "zeta-llm"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_what_numbers_one_machine_or_account_is_found(name):
    line, needle = NUMBERS[name]
    assert needle not in redacted(line)


def test_all_values_that_a_machine_holds_are_known():
    values = [draw("[a-z0-9]{20}", random.Random(i))[0] for i in range(3000)]
    redactor = Redactor(KnownValues(secrets=tuple(values)))
    shown = redactor.redact("\n".join(f"step {i} {value}" for i, value in enumerate(values)))
    assert [value for value in values if value in shown] == []

"""Secrets of many kinds planted in many surroundings, and lines that hold none: drawn, with a fixed seed."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple

_HEX = "0123456789abcdef"
_ALNUM = string.ascii_letters + string.digits
_URLSAFE = _ALNUM + "_-"
_UPPER = string.ascii_uppercase + string.digits


class Planted(NamedTuple):
    kind: str
    context: str
    secret: str
    text: str


def _draw(random_: random.Random, alphabet: str, count: int) -> str:
    return "".join(random_.choice(alphabet) for _ in range(count))


def _mixed(random_: random.Random, alphabet: str, count: int) -> str:
    while True:
        drawn = _draw(random_, alphabet, count)
        if any(c.isdigit() for c in drawn) and any(c.isalpha() for c in drawn):
            return drawn


def _uuid(r: random.Random) -> str:
    return "-".join(_mixed(r, _HEX, n) for n in (8, 4, 4, 4, 12))


def _jwt(r: random.Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256'})}.{part({'sub': _draw(r, _HEX, 12)})}.{_draw(r, _URLSAFE, 43)}"


SHAPED: dict[str, Callable[[random.Random], str]] = {
    "huggingface": lambda r: "hf_" + _mixed(r, _ALNUM, 34),
    "huggingface-org": lambda r: "api_org_" + _mixed(r, _ALNUM, 34),
    "openai": lambda r: "sk-" + _mixed(r, _ALNUM, 48),
    "openai-legacy": lambda r: f"sk-{_mixed(r, _ALNUM, 20)}T3BlbkFJ{_mixed(r, _ALNUM, 20)}",
    "openai-project": lambda r: "sk-proj-" + _mixed(r, _URLSAFE, 156),
    "anthropic": lambda r: f"sk-ant-api03-{_mixed(r, _URLSAFE, 93)}AA",
    "openrouter": lambda r: "sk-or-v1-" + _mixed(r, _HEX, 64),
    "deepseek": lambda r: "sk-" + _mixed(r, _HEX, 32),
    "wandb-local": lambda r: "local-" + _mixed(r, _HEX, 40),
    "github": lambda r: f"gh{r.choice('pousr')}_" + _mixed(r, _ALNUM, 36),
    "github-fine": lambda r: f"github_pat_{_mixed(r, _ALNUM, 22)}_{_mixed(r, _ALNUM, 59)}",
    "gitlab": lambda r: "glpat-" + _mixed(r, _ALNUM, 20),
    "aws-id": lambda r: r.choice(["AKIA", "ASIA"]) + _mixed(r, _UPPER, 16),
    "google": lambda r: "AIza" + _mixed(r, _URLSAFE, 35),
    "google-oauth": lambda r: "ya29.a0" + _mixed(r, _URLSAFE, 120),
    "google-client": lambda r: "GOCSPX-" + _mixed(r, _ALNUM, 28),
    "azure-ad": lambda r: f"{_mixed(r, _ALNUM, 3)}8Q~{_mixed(r, _ALNUM, 34)}",
    "slack-bot": lambda r: (
        f"xoxb-{_draw(r, string.digits, 12)}-{_draw(r, string.digits, 12)}-{_mixed(r, _ALNUM, 24)}"
    ),
    "pypi": lambda r: "pypi-AgEIcHlwaS5vcmc" + _mixed(r, _URLSAFE, 120),
    "npm": lambda r: "npm_" + _mixed(r, _ALNUM, 36),
    "jwt": _jwt,
    "nvidia": lambda r: "nvapi-" + _mixed(r, _URLSAFE, 64),
    "databricks": lambda r: "dapi" + _mixed(r, _HEX, 32),
    "digitalocean": lambda r: "dop_v1_" + _mixed(r, _HEX, 64),
    "telegram": lambda r: f"{_draw(r, '123456789', 10)}:AA{_mixed(r, _ALNUM, 33)}",
    "stripe": lambda r: "sk_live_" + _mixed(r, _ALNUM, 24),
    "sendgrid": lambda r: f"SG.{_mixed(r, _ALNUM, 22)}.{_mixed(r, _ALNUM, 43)}",
    "replicate": lambda r: "r8_" + _mixed(r, _ALNUM, 37),
    "groq": lambda r: "gsk_" + _mixed(r, _ALNUM, 52),
    "xai": lambda r: "xai-" + _mixed(r, _ALNUM, 80),
    "langsmith": lambda r: f"lsv2_pt_{_mixed(r, _HEX, 32)}_{_mixed(r, _HEX, 10)}",
    "vault": lambda r: "hvs." + _mixed(r, _ALNUM, 90),
    "docker": lambda r: "dckr_pat_" + _mixed(r, _ALNUM, 27),
    "modelscope": lambda r: "ms-" + _uuid(r),
    "alibaba": lambda r: "LTAI5t" + _mixed(r, _ALNUM, 18),
    "runpod": lambda r: "rpa_" + _mixed(r, _UPPER, 44),
}
"""Kinds that their shape gives away anywhere."""

KEYED: dict[str, tuple[str, Callable[[random.Random], str]]] = {
    "wandb": ("WANDB_API_KEY", lambda r: _mixed(r, _HEX, 40)),
    "aws-secret": ("AWS_SECRET_ACCESS_KEY", lambda r: _mixed(r, _ALNUM + "+/", 40)),
    "aws-session": ("AWS_SESSION_TOKEN", lambda r: "FwoGZXIvYXdzE" + _mixed(r, _ALNUM, 120)),
    "azure-openai": ("AZURE_OPENAI_KEY", lambda r: _mixed(r, _HEX, 32)),
    "ngc-legacy": ("NGC_API_KEY", lambda r: _mixed(r, _ALNUM, 84)),
    "comet": ("COMET_API_KEY", lambda r: _mixed(r, _ALNUM, 25)),
    "cohere": ("COHERE_API_KEY", lambda r: _mixed(r, _ALNUM, 40)),
    "database": ("DB_PASSWORD", lambda r: _mixed(r, _ALNUM + "!#%", 14)),
    "client-secret": ("OAUTH_CLIENT_SECRET", lambda r: _mixed(r, _ALNUM, 32)),
    "kaggle": ("KAGGLE_KEY", lambda r: _mixed(r, _HEX, 32)),
}
"""Kinds that only a telling name beside them gives away."""


def _wrap(text: str, width: int, indent: str = "") -> str:
    return ("\n" + indent).join(text[i : i + width] for i in range(0, len(text), width))


def _name_of(kind: str) -> str:
    return KEYED[kind][0] if kind in KEYED else kind.replace("-", "_").upper() + "_TOKEN"


def _contexts(kind: str, secret: str, r: random.Random) -> Iterator[tuple[str, str]]:
    name = _name_of(kind)
    low = name.lower()
    yield "env", f"PATH=/usr/bin\n{name}={secret}\nRANK=0"
    yield "export", f'export {name}="{secret}"'
    yield "log", f"2026-11-20 10:11:12,345 INFO train.py:88 using {low}={secret} for upload"
    yield "json", json.dumps({"run": 3, low: secret, "lr": 2e-5}, indent=1)
    yield "json-inline", json.dumps({"env": {name: secret}, "ok": True})
    yield "json-in-json", json.dumps({"event": json.dumps({"key": 1, name: secret})})
    yield "yaml", f"trainer:\n  {low}: {secret}\n  batch: 4"
    yield "yaml-quoted", f"{low}: '{secret}'"
    yield "kubernetes", f"- name: {name}\n  value: {secret}"
    yield "kwargs", f"    login({low}='{secret}', add_to_git=False)"
    yield "repr", f"environ({{'HOME': '/root', '{name}': '{secret}', 'LANG': 'C'}})"
    yield (
        "argv",
        f"Popen(['python', 'train.py', '--{low.replace('_', '-')}', '{secret}', '--max-tokens', '512'])",
    )
    yield "flag", f"python train.py --{low.replace('_', '-')} {secret} --lr 1e-4"
    yield "flag-equals", f"python train.py --{low}={secret}"
    yield (
        "traceback",
        (
            f'Traceback (most recent call last):\n  File "train.py", line 3\n    main({low}="{secret}")\n'
            f"ValueError: bad request"
        ),
    )
    yield "header", f"> Authorization: Bearer {secret}"
    yield "ansi", f"\x1b[1m\x1b[32m{name}\x1b[0m=\x1b[33m{secret}\x1b[0m"
    middle = len(secret) // 2
    yield "ansi-inside", f"{name}={secret[:middle]}\x1b[1m{secret[middle:]}\x1b[0m done"
    yield "ansi-spelled", json.dumps({"line": f"\x1b[32m{name}={secret}\x1b[0m"})
    width = r.randrange(60, 100)
    yield "wrapped", _wrap(f"[rank0]: connecting with {name}={secret} and more text after it", width)
    head = f"{name}={secret}"
    cut = len(name) + 1 + max(8, len(secret) // 2)
    yield "wrapped-token", f"{head[:cut]}\n{head[cut:]}\nnext line of the log"
    yield "wrapped-box", f"│ {head[:cut]} │\n│ {head[cut:]}  │"
    yield "wrapped-ranks", f"[rank0]: {head[:cut]}\n[rank0]: {head[cut:]}\n[rank0]: done"
    yield "invisible-joint", f"{head[:cut]}\u200b{head[cut:]}"
    yield "wrapped-indented", f"{head[:cut]}\n      {head[cut:]}"


def _shape_contexts(secret: str) -> Iterator[tuple[str, str]]:
    yield "bare", f"INFO got {secret}"
    yield "url-path", f"GET https://example.com/v1/{secret}/models 401"
    yield "url-query", f"https://example.com/v1?model=x&q={secret}&n=1"
    yield "quoted", f"unexpected value '{secret}'"
    yield "escaped-newline", json.dumps({"log": f"line one\n{secret}\nline three"})
    yield "parenthesis", f"RuntimeError: invalid credentials ({secret})"
    yield "percent", f"cb=https%3A%2F%2Fexample.com%3Fq%3D{secret}%26x%3D1"


def planted(seed: int = 1, rounds: int = 1) -> list[Planted]:
    """Every kind in every surrounding, `rounds` times over with new values."""
    r = random.Random(seed)
    found: list[Planted] = []
    for _ in range(rounds):
        for kind, make in SHAPED.items():
            secret = make(r)
            contexts = (*_contexts(kind, secret, r), *_shape_contexts(secret))
            found += [Planted(kind, context, secret, text) for context, text in contexts]
        for kind, (_, make) in KEYED.items():
            secret = make(r)
            found += [Planted(kind, context, secret, text) for context, text in _contexts(kind, secret, r)]
        found += list(_framed(r))
    return found


def _framed(r: random.Random) -> Iterator[Planted]:
    user, password = _draw(r, string.ascii_lowercase, 7), _mixed(r, _ALNUM, 16)
    for scheme in ("https", "http", "postgresql", "redis", "mongodb+srv", "socks5h"):
        yield Planted(
            "basic-auth-url", scheme, password, f"fetch {scheme}://{user}:{password}@example.com:80/x failed"
        )
    yield Planted("proxy", "env", password, f"HTTPS_PROXY=http://{user}:{password}@proxy.example.com:3128")
    yield Planted("curl", "flag", password, f"curl -u {user}:{password} https://example.com")
    signature = _mixed(r, _HEX, 64)
    signed = (
        f"https://s3.example.com/b/k?X-Amz-Credential=AKIA{_draw(r, _UPPER, 16)}&X-Amz-Signature={signature}"
    )
    yield Planted("signed-url", "aws", signature, f"Downloading {signed}&x=1")
    sas = _mixed(r, _ALNUM, 43)
    yield Planted(
        "signed-url", "azure", sas, f"https://a.blob.example.com/c/x?sv=2024-11-04&se=2026&sr=b&sig={sas}%3D"
    )
    cdn = _mixed(r, _ALNUM, 90)
    yield Planted(
        "signed-url",
        "cdn",
        cdn,
        f"https://cdn.example.com/x?Expires=1763&Policy=abc123def&Signature={cdn}&Key-Pair-Id=K1",
    )
    jupyter = _mixed(r, _HEX, 48)
    yield Planted("jupyter", "url", jupyter, f"    http://localhost:8888/tree?token={jupyter}")
    account = _mixed(r, _ALNUM + "+/", 86) + "=="
    text = f"DefaultEndpointsProtocol=https;AccountName=abc;AccountKey={account};EndpointSuffix=core.example"
    yield Planted("azure-storage", "connection-string", account, text)
    wandb = _mixed(r, _HEX, 40)
    yield Planted("wandb", "netrc", wandb, f"machine api.wandb.ai login user password {wandb}")
    yield Planted("wandb", "login", wandb, f"$ wandb login {wandb}")
    yield Planted("wandb", "login-flag", wandb, f"$ wandb login --relogin {wandb}")
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    yield Planted("basic-header", "header", basic, f"Authorization: Basic {basic}")
    token = _mixed(r, _URLSAFE, 24)
    yield Planted("conda", "channel", token, f"channels: https://conda.example.com/t/{token}/main/linux-64")
    webhook = f"T{_draw(r, _UPPER, 8)}/B{_draw(r, _UPPER, 8)}/{_mixed(r, _ALNUM, 24)}"
    yield Planted("slack-webhook", "url", webhook, f"POST https://hooks.slack.com/services/{webhook} 200")
    body = _mixed(r, _ALNUM + "+/", 64 * 6)
    for label in ("RSA ", "", "OPENSSH ", "EC "):
        pem = f"-----BEGIN {label}PRIVATE KEY-----\n{_wrap(body, 64)}\n-----END {label}PRIVATE KEY-----"
        yield Planted("private-key", f"{label}pem", body[:64], pem)
        yield Planted("private-key", f"{label}pem-tail", body[-64:], pem)
        yield Planted("private-key", f"{label}json", body[64:128], json.dumps({"private_key": pem}))
        yield Planted("private-key", f"{label}cut", body[128:192], pem[: len(pem) - 80])
    cookie = _mixed(r, _ALNUM, 32)
    yield Planted("cookie", "header", cookie, f"Cookie: session={cookie}; theme=dark")
    kaggle = _mixed(r, _HEX, 32)
    yield Planted("kaggle", "file", kaggle, json.dumps({"username": "someone", "key": kaggle}))


def identities(seed: int = 2, count: int = 12) -> list[Planted]:
    """Users, homes, hosts, addresses, serial numbers and private indexes in the lines that tell them."""
    r = random.Random(seed)
    found: list[Planted] = []
    for _ in range(count):
        user = _draw(r, string.ascii_lowercase, 3) + r.choice(["son", "ova", "berg", "ski"])
        host = f"{r.choice(['gpu', 'dgx', 'hpc'])}-{r.choice(['node', 'box'])}-{r.randrange(10, 99)}"
        address = f"{r.choice(['10', '192.168', '172.16'])}." + ".".join(
            str(r.randrange(1, 250)) for _ in range(3)
        )
        address = ".".join(address.split(".")[:4])
        found += _user_lines(user, host) + _host_lines(host, address) + _serial_lines(r)
    return found


def _user_lines(user: str, host: str) -> list[Planted]:
    lines = {
        "home": f'  File "/home/{user}/miniconda3/lib/python3.11/site-packages/torch/nn.py", line 9',
        "mac": f"/Users/{user}/venv/bin/python",
        "windows": f"C:\\Users\\{user}\\AppData\\Local\\Temp",
        "nfs": f"/mnt/nfs1/home/{user}/ckpt/step-100",
        "variable": f"USER={user}",
        "prompt": f"{user}@{host}:~/train$ python train.py",
        "wandb": f"wandb: Currently logged in as: {user} (lab). Use `wandb login --relogin` to force relogin",
        "email": f"Author: {user}@lab.example.org",
        "learned": f"PermissionError: /home/{user}/x\nowned by {user}, mode 0600",
        "ssh": f"ssh {user}@{host} nvidia-smi",
        "inductor": f"/tmp/torchinductor_{user}/xy/cxyz.py",
        "id": f"uid=1000({user}) gid=1000({user}) groups=1000({user})",
        "ls": f"-rw-r--r-- 1 {user} users 4096 Nov 20 10:11 train.py",
        "gpustat": f"[0] NVIDIA A100 | 45'C,  99 % | 40000 / 40960 MB | root(10M) {user}(39000M)",
    }
    return [Planted("user", context, user, text) for context, text in lines.items()]


def _host_lines(host: str, address: str) -> list[Planted]:
    hosts = {
        "nccl": f"{host}:3151:3151 [0] NCCL INFO Bootstrap : Using eth0:{address}<0>",
        "variable": f"HOSTNAME={host}",
        "slurm": f"SLURMD_NODENAME={host}",
        "elastic": f"  host      : {host}.cluster.internal\n  rank      : 0 (local_rank: 0)",
        "store": f"[W socket.cpp:752] The client socket has failed to connect to [{host}]:29500 (errno: "
        "111).",
        "json": json.dumps({"hostname": host, "gpus": 8}),
        "uname": f"Linux {host} 6.8.0-45-generic #45-Ubuntu SMP x86_64 GNU/Linux",
    }
    addresses = {
        "nccl": hosts["nccl"],
        "master": f"MASTER_ADDR={address}",
        "tcp": f"init_method='tcp://{address}:29500'",
        "ssh": f"Connecting to {address} port 22",
        "ray": f"ray.init(address='{address}:6379')",
        "prose": f"Local node IP: {address}",
    }
    return [Planted("host", c, host, t) for c, t in hosts.items()] + [
        Planted("ip", c, address, t) for c, t in addresses.items()
    ]


def _serial_lines(r: random.Random) -> list[Planted]:
    uuid, serial = "GPU-" + _uuid(r), _draw(r, "123456789", 13)
    mac = ":".join(_draw(r, _HEX, 2) for _ in range(5)) + ":a1"
    index = f"pypi.{_draw(r, string.ascii_lowercase, 6)}-corp.example"
    return [
        Planted("gpu-uuid", "list", uuid, f"GPU 0: NVIDIA A100-SXM4-80GB (UUID: {uuid})"),
        Planted("gpu-uuid", "variable", uuid, f"CUDA_VISIBLE_DEVICES={uuid}"),
        Planted("gpu-uuid", "wrapped", uuid, f"GPU 0: NVIDIA A100 (UUID: {uuid[:20]}\n{uuid[20:]})"),
        Planted("serial", "xml", serial, f"<serial>{serial}</serial>"),
        Planted("mig-uuid", "list", uuid[4:], f"  MIG 1g.10gb Device 0: (UUID: MIG-{uuid[4:]})"),
        Planted("serial", "smi", serial, f"    Serial Number                         : {serial}"),
        Planted("mac", "ip", mac, f"    link/ether {mac} brd ff:ff:ff:ff:ff:ff"),
        Planted(
            "ipv6", "ip", "2a02:8070:d1c:4300", "inet6 2a02:8070:d1c:4300:5054:ff:fe12:3456/64 scope global"
        ),
        Planted("index", "pip", index, f"Looking in indexes: https://{index}/simple"),
        Planted("index", "flag", index, f"pip install torch --extra-index-url https://{index}/root/dev"),
        Planted(
            "index", "artifactory", index, f"Downloading https://{index}/artifactory/api/x/torch-2.11.0.whl"
        ),
    ]

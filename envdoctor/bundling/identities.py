"""What tells who and where: users, homes, hosts, addresses, serial numbers, private indexes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envdoctor.bundling.spans import Span

# Account names that tell nothing of a person; in a home path they are replaced all the same.
_COMMON_ACCOUNTS_WORDS = """
root admin administrator user users username ubuntu debian centos fedora ec2-user azureuser opc jovyan
runner vscode coder app worker docker node nobody guest default test dev home data work workspace shared
public conda builder build jenkins gitlab-runner github system service daemon slurm ray vllm git www-data
sshuser nvidia tesla geforce triton torch cuda python linux intel
all none null self group owner model models train training project projects code src tmp adam
adamw lamb lars max min ada pascal turing ampere hopper volta blackwell kepler maxwell bert albert roberta
bart llama alpaca vicuna falcon bloom gemma mistral qwen claude jan mark bill will guy an li
"""
COMMON_ACCOUNTS = frozenset(_COMMON_ACCOUNTS_WORDS.split())
_COMMON_HOSTS_WORDS = """
localhost localhost.localdomain ubuntu debian gpu gpus node nodes worker workers master server client host
hosts hostname docker container desktop laptop dev test train training main root cuda torch python linux
ip none null unknown local remote head compute login cluster rank pod job
"""
COMMON_HOSTS = frozenset(_COMMON_HOSTS_WORDS.split())
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,31}"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9-]{1,63}){0,8}"

_HOME = re.compile(
    r"(?:/(?:home|homes|Users|usr/people|export/home|nfshome|lustre/home|u/home)/|"
    r"[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)|/(?:mnt|data|nfs|gpfs|lustre|fsx|efs|scratch|storage|ceph|"
    r"cephfs|beegfs|"
    r"weka|shared|raid|ssd|nvme)[A-Za-z0-9_-]{0,8}/(?:home|homes|users|user)/|"
    r"%2Fhome%2F)(?P<v>[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63})"
)
_WINDOWS_HOME = re.compile(
    r"[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)(?P<v>[A-Za-z0-9_][^\\/:*?\"<>|\n]{0,63})(?:\\|/)"
)
_ACCOUNT = re.compile(
    r"(?:/torchinductor_|\b[ug]id=[0-9]{1,10}\(|(?:^|[ \n])[d-][rwxsStT-]{9}[.+@]?[ ]{1,6}[0-9]{1,6}[ ]{1,4})"
    r"(?P<v>[A-Za-z_][A-Za-z0-9_.-]{0,31})"
)
_GPUSTAT = re.compile(r"[ |](?P<v>[A-Za-z_][A-Za-z0-9_.-]{0,31})\([0-9]{1,7}M\)")
_PUBLIC_HOMES = frozenset({"conda", "linuxbrew"})
_USER_KEY = re.compile(
    r"(?:\b(?:USER|LOGNAME|USERNAME|SUDO_USER|SLURM_JOB_USER|SLURM_JOB_ACCOUNT|NB_USER|GIT_AUTHOR_NAME|"
    r"LC_IDENTIFICATION_USER|KAGGLE_USERNAME|JUPYTERHUB_USER)(?:=[\"']?|[\"']\s{0,2}:\s{0,2}[\"'])|"
    r"(?i:\b(?:username|user_name|login_name|logname|owner|ssh_user|"
    r"sudo_user))[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?|"
    r"[\"']user[\"']:[ \t]{0,3}[\"']|\buser=[\"']?|\bmachine [^\s]{1,100} login |"
    r"(?:[Ll]ogged in as:?|[Ll]ogin successful for|whoami:) )"
    r"(?P<v>" + _NAME + r")"
)
_PROMPT = re.compile(
    r"(?:^|[\s(\[\"'])(?P<user>[A-Za-z_][A-Za-z0-9_.-]{0,31})@(?P<host>"
    + _HOST
    + r")(?::[ \t]{0,1}[~/$#]|[ \t]{1,2}[~/$#%]|\]|\n|$)",
    re.MULTILINE,
)
_SSH = re.compile(
    r"\b(?:ssh|scp|rsync|sftp|ssh://)[^\n@]{0,60}?(?P<user>[A-Za-z_][A-Za-z0-9_.-]{0,31})@(?P<host>"
    + _HOST
    + r")"
)
_WANDB_ENTITY = re.compile(r"wandb\.ai/(?P<v>[A-Za-z0-9_.-]{2,64})(?:/|\s|$)")

_HOST_KEY = re.compile(
    r"(?:(?i:\b(?:host_?name|node_?name|nodelist|master_addr|master_address|master-addr|submit_host|"
    r"computer_?name|fqdn|"
    r"machine_name|ansible_host|rdzv_endpoint|rdzv-endpoint))[\"']?[ \t]{0,12}[:=][ \t]{0,3}[\"']?|"
    r"\bHOST(?:=[\"']?|[\"']\s{0,2}:\s{0,2}[\"'])|"
    r"SLURM(?:D_NODENAME|_NODELIST|_JOB_NODELIST|_SUBMIT_HOST|_LAUNCH_NODE_IPADDR)=[\"']?)(?P<v>"
    + _HOST
    + r")"
)
_HOST_LINE = re.compile(
    r"(?:\bhost[ ]{2,12}:[ ]|<hostname>)(?P<v>"
    + _HOST
    + r")|\bLinux[ ](?P<u>"
    + _HOST
    + r")[ ][0-9]{1,2}\.[0-9]{1,3}\."
)
_CREDENTIALS_HOST = re.compile(r"://[^\s/@:\"'<>]{0,200}:[^\s/\"'<>]{1,400}@(?P<v>" + _HOST + r")")
_HOST_HINT = re.compile(
    r"(?:\bhost[ \t]{0,12}[:=][ \t]{0,3}[\"']?|\b(?:hostname|nodename|master_addr|--[a-z_-]{0,20}(?:addr|"
    r"host|node)s?) |"
    r"(?i:\b(?:running|started|launched|launching|connected|connecting|listening|killed) on (?:host|node|"
    r"machine) )|"
    r"failed to connect to \[?|client socket has (?:timed out|failed)[^\n]{0,60} to \(?\[?|"
    r"server socket has [^\n]{0,60} \(?\[?|\bon node |\bNode )(?P<v>" + _HOST + r")"
)
_NCCL_TAIL = re.compile(r":[0-9]{1,8}:[0-9]{1,8} \[[0-9]{1,3}\] (?:NCCL|misc|init|transport)")
_RANK_HOST = re.compile(
    r"\[(?:[a-z]{0,8}[0-9]{1,4}\]:\[)?(?P<v>[A-Za-z][A-Za-z0-9-]{2,62}[0-9]):[0-9]{1,7}\]"
)
_HOST_AND_PORT = re.compile(r"\((?P<v>" + _HOST + r"), [0-9]{2,5}\)")
_PRIVATE_TAIL = re.compile(
    r"\.(?:internal|local|corp|lan|intra|intranet|localdomain|home\.arpa|private|svc)(?:$|[^A-Za-z0-9._-]|"
    r"\.[^A-Za-z0-9])"
)
_HOST_BEFORE = re.compile(
    r"(?:^|[^A-Za-z0-9])(?P<v>[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,63}){0,6})$"
)

_EMAIL_TAIL = re.compile(r"@[A-Za-z][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,62}){0,4}\.[A-Za-z]{2,24}\b")
_EMAIL_BEFORE = re.compile(r"[A-Za-z0-9_%+][A-Za-z0-9._%+-]{0,63}$")
_URL_USER = re.compile(r"://[^\s/@\"'<>]{0,200}$")
_SERVICE_ACCOUNTS = frozenset({"git", "hg", "svn"})
_GPU_UUID = re.compile(
    r"\b(?:GPU|MIG|GPU-MIG)-[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
)
_OLD_MIG = re.compile(r"\bMIG-GPU-[0-9a-fA-F-]{36}(?:/[0-9]{1,2}){0,2}")
_SERIAL = re.compile(
    r"(?i)\b(?:(?:chassis |product |board |system |gpu |module |baseboard )?serial(?:[ _-]?(?:number|no\.?|"
    r"num))?|machine[ _-]?id|"
    r"boot[ _-]?id|(?:system|product|cluster|platform|host)[ _-]?uuid|clusteruuid|gpu pdi|host[ _-]?id|"
    r"asset[ _-]?tag|instance[ _-]?id)"
    r"[\"']?[ \t]{0,60}[:=>][ \t]{0,3}[\"']?(?P<v>[A-Za-z0-9][A-Za-z0-9-]{5,63})\b"
)

_INDEX_KEY = re.compile(
    r"(?i)(?:index[-_]?url|extra[-_]?index|find[-_]?links|trusted[-_]?host|UV_[A-Z_]{0,12}INDEX|"
    r"looking in (?:indexes|links)|"
    r"channel[-_ ]?(?:alias|urls?|s)\b|default_channels|\[\[tool\.uv\.index|registry\s{0,2}=|-i https?:|"
    r"--index\b|-f https?:|-c https?:)"
)
_URL = re.compile(r"https?://(?P<rest>[^\s\"'<>,;)\]}|]{3,1000})")
_INDEX_PATH = re.compile(
    r"(?i)/(?:simple|artifactory|nexus|repository|pypi|conda|api/conda|devpi|whl)(?:/|$)"
)
# The label before the public suffix of the indexes, mirrors and hubs that everyone uses.
_PUBLIC_LABELS_WORDS = """
pypi python pytorch nvidia anaconda github githubusercontent gitlab huggingface google googleapis
aliyun aliyuncs tsinghua ustc tencent tencentyun huaweicloud douban sjtu bfsu conda-forge prefix astral
vllm modelscope readthedocs python repo jetson-ai-lab paddlepaddle openmmlab dgl pyg xformers mirrors
flashinfer
hf docker ghcr nvcr wandb openai anthropic
"""
_PUBLIC_LABELS = frozenset(_PUBLIC_LABELS_WORDS.split())
_SECOND_LEVEL_WORDS = """
com edu org net ac co gov
"""
_SECOND_LEVEL = frozenset(_SECOND_LEVEL_WORDS.split())


def is_public_host(host: str) -> bool:
    """True for the indexes, mirrors and hubs that everyone uses, judged by the label before the public "
    "suffix."""
    labels = host.lower().rpartition("@")[2].partition(":")[0].split(".")
    if len(labels) < 2:
        return labels[0] == "localhost"
    position = -3 if len(labels) > 2 and labels[-2] in _SECOND_LEVEL and len(labels[-1]) == 2 else -2
    label = labels[position]
    return label in _PUBLIC_LABELS or label.startswith("python") or all(label.isdigit() for label in labels)


def is_home_path(path: str) -> bool:
    """True for a folder whose last part is an account's name by the usual layout, such as `/home/alice`."""
    return bool(_HOME.fullmatch(path))


def find_users(text: str) -> Iterator[Span]:
    """Find account names in home paths, variables, prompts and log-in messages."""
    for match in _HOME.finditer(text):
        if match["v"] not in _PUBLIC_HOMES:
            yield Span(*match.span("v"), "user")
    for match in _WINDOWS_HOME.finditer(text):
        yield Span(*match.span("v"), "user")
    for pattern in (_USER_KEY, _WANDB_ENTITY, _ACCOUNT, _GPUSTAT):
        for match in pattern.finditer(text):
            if match["v"].lower() not in COMMON_ACCOUNTS:
                yield Span(*match.span("v"), "user")
    for pattern in (_PROMPT, _SSH):
        for match in pattern.finditer(text):
            if match["user"] not in ("git", "root"):
                yield Span(*match.span("user"), "user")


def find_hosts(text: str) -> Iterator[Span]:
    """Find host names in prompts, launchers' and NCCL's lines, variables, and under private domains."""
    for match in _HOST_KEY.finditer(text):
        if len(match["v"]) > 2 and match["v"].lower() not in COMMON_HOSTS and not _is_address(match["v"]):
            yield Span(*match.span("v"), "host")
    for match in _HOST_LINE.finditer(text):
        name = "v" if match["v"] else "u"
        if match[name].lower() not in COMMON_HOSTS and not _is_address(match[name]):
            yield Span(*match.span(name), "host")
    for match in _CREDENTIALS_HOST.finditer(text):
        if not is_public_host(match["v"]):
            yield Span(*match.span("v"), "host")
    for pattern in (_HOST_HINT, _RANK_HOST, _HOST_AND_PORT):
        for match in pattern.finditer(text):
            if _is_hostlike(match["v"]):
                yield Span(*match.span("v"), "host")
    for match in (*_NCCL_TAIL.finditer(text), *_PRIVATE_TAIL.finditer(text)):
        before = _HOST_BEFORE.search(text[max(0, match.start() - 128) : match.start()])
        if before and before["v"].lower() not in COMMON_HOSTS:
            suffix = 0 if match[0].startswith(":") else len(match[0].rstrip("./:,;)]}\"' \n\t"))
            yield Span(match.start() - len(before["v"]), match.start() + suffix, "host")
    for pattern in (_PROMPT, _SSH):
        for match in pattern.finditer(text):
            if not is_public_host(match["host"]):
                yield Span(*match.span("host"), "host")


def _is_hostlike(word: str) -> bool:
    lower = word.lower()
    if lower in COMMON_HOSTS or re.fullmatch(r"v?[0-9.:]+|(?:local_)?rank[0-9]*|worker[0-9]*", lower):
        return False
    return any(c.isdigit() or c in "-." for c in word) and not is_public_host(word)


def _is_address(word: str) -> bool:
    return bool(re.fullmatch(r"[0-9.]+", word))


def find_emails(text: str) -> Iterator[Span]:
    """Find e-mail addresses; `git@github.com` is none."""
    for match in _EMAIL_TAIL.finditer(text):
        before = _EMAIL_BEFORE.search(text[max(0, match.start() - 64) : match.start()])
        in_url = before and text[max(0, match.start() - 300) : match.start() - len(before[0])]
        if before and before[0] not in _SERVICE_ACCOUNTS and not _URL_USER.search(in_url or ""):
            yield Span(match.start() - len(before[0]), match.end(), "email")


def find_gpu_uuids(text: str) -> Iterator[Span]:
    """Find the UUIDs of GPUs and MIG devices."""
    for pattern in (_GPU_UUID, _OLD_MIG):
        for match in pattern.finditer(text):
            yield Span(*match.span(), "gpu-uuid")


def find_serials(text: str) -> Iterator[Span]:
    """Find GPU UUIDs, serial numbers and machine ids."""
    yield from find_gpu_uuids(text)
    for match in _SERIAL.finditer(text):
        if any(c.isdigit() for c in match["v"]) and set(match["v"]) - set("0xX-"):
            yield Span(*match.span("v"), "serial")


def find_indexes(text: str) -> Iterator[Span]:
    """Find package indexes and channels that are not the ones everyone uses."""
    for match in _URL.finditer(text):
        host, slash, path = match["rest"].partition("/")
        if is_public_host(host) or not host or "<" in host:
            continue
        line = text[max(0, match.start() - 200) : match.start()].rpartition("\n")[2]
        if _INDEX_PATH.search(slash + path) or _INDEX_KEY.search(line + match[0][:12]):
            yield Span(*match.span(), "private-index")

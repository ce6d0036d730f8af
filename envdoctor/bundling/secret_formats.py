"""What issued secrets look like: one row a kind, in the subset of patterns that RE2 takes too.

Every pattern is linear: repetition is bounded, or is the last thing in the pattern, or is followed by a
character outside the repeated class with the start held to one place in a run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

# What may stand before a token: the start, no word character, or the tail of an escape spelled out
# (`\nhf_…` in JSON, `%3Dsk-…` in a URL, `[32msk-…` where the log lost its escape character).
_EDGE = r"(?:^|[^A-Za-z0-9]|\\[nrt]|%[0-9A-Fa-f]{2}|\\u[0-9a-fA-F]{4}|\[[0-9;]{1,8}m)"
_STRICT_EDGE = r"(?:^|[^A-Za-z0-9_-]|\\[nrt]|%[0-9A-Fa-f]{2}|\\u[0-9a-fA-F]{4}|\[[0-9;]{1,8}m)"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True)
class TokenFormat:
    """One issuer's format: its placeholder's name, a literal that must occur, and the pattern.

    The group `v`, or the whole match, is the secret. `fixed`: the length is known, so that a match may run
    over a line break without taking the next line's first word. `mixed`: only a value that holds letters and
    digits counts.
    """

    kind: str
    hint: str
    pattern: str
    fixed: bool = False
    mixed: bool = False

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.pattern)

    @cached_property
    def unbounded(self) -> TokenFormat:
        """The same without a word's end, for a text whose lines were joined."""
        return replace(self, pattern=self.pattern.replace(r"\b", ""))


FORMATS: tuple[TokenFormat, ...] = (
    TokenFormat("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{34}", fixed=True),
    TokenFormat("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{16,120}", mixed=True),
    TokenFormat("huggingface-token", "api_org_", r"api_org_[A-Za-z0-9]{34}", fixed=True),
    TokenFormat("anthropic-key", "sk-ant-", r"sk-ant-[a-z0-9]{2,10}-[A-Za-z0-9_-]{93}AA\b", fixed=True),
    TokenFormat("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,400}"),
    TokenFormat("openrouter-key", "sk-or-", r"sk-or-v1-[0-9a-f]{64}", fixed=True),
    TokenFormat("openai-key", "sk-", _EDGE + r"(?P<v>sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,400})"),
    TokenFormat("openai-key", "T3BlbkFJ", r"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}", fixed=True),
    TokenFormat("openai-key", "sk-", _EDGE + r"(?P<v>sk-[A-Za-z0-9]{48})\b", fixed=True, mixed=True),
    TokenFormat("openai-key", "sk-", _EDGE + r"(?P<v>sk-[A-Za-z0-9]{32})\b", fixed=True, mixed=True),
    TokenFormat("openai-key", "sk-", _EDGE + r"(?P<v>sk-[A-Za-z0-9]{24,120})", mixed=True),
    TokenFormat("wandb-key", "local-", r"local-[0-9a-f]{40}", fixed=True),
    TokenFormat("wandb-key", "wandb_v", r"wandb_v[0-9]_[A-Za-z0-9_]{20,120}"),
    TokenFormat("github-token", "gh", r"gh[pousr]_[A-Za-z0-9]{36}", fixed=True),
    TokenFormat("github-token", "gh", r"gh[pousr]_[A-Za-z0-9_]{20,255}", mixed=True),
    TokenFormat("github-token", "github_pat_", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}", fixed=True),
    TokenFormat("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    TokenFormat(
        "gitlab-token", "gl", r"gl(?:pat|dt|rt|ptt|ft|soat|cbt|agent|oas|imt)-[A-Za-z0-9_-]{20}", fixed=True
    ),
    TokenFormat(
        "gitlab-token", "gl", r"gl(?:pat|dt|rt|ptt|ft|soat|cbt|agent|oas|imt)-[A-Za-z0-9_.-]{20,120}"
    ),
    TokenFormat(
        "aws-key-id", "A", _EDGE + r"(?P<v>(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16})\b", fixed=True
    ),
    TokenFormat("google-api-key", "AIza", r"AIza[A-Za-z0-9_-]{35}", fixed=True),
    TokenFormat("google-oauth", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
    TokenFormat("google-oauth", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{28}", fixed=True),
    TokenFormat("google-oauth", "1//0", _EDGE + r"(?P<v>1//0[A-Za-z0-9_-]{40,})"),
    TokenFormat("azure-secret", "Q~", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    TokenFormat("slack-token", "xox", r"xox[bp]-[0-9]{10,13}-[0-9]{10,13}-[A-Za-z0-9]{24}", fixed=True),
    TokenFormat("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9.-]{10,255}"),
    TokenFormat("slack-token", "xapp-", r"xapp-[0-9]-[A-Za-z0-9-]{10,255}"),
    TokenFormat(
        "slack-webhook",
        "hooks.slack",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<v>[A-Za-z0-9/_-]{20,255})",
    ),
    TokenFormat("pypi-token", "pypi-", r"pypi-AgE[A-Za-z0-9_-]{30,}"),
    TokenFormat("pypi-token", "pypi-", r"pypi-[A-Za-z0-9_-]{60,}", mixed=True),
    TokenFormat("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}", fixed=True),
    TokenFormat(
        "jwt",
        "eyJ",
        _STRICT_EDGE + r"(?P<v>eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{0,})?)",
    ),
    TokenFormat("neptune-token", "eyJhcGlf", r"eyJhcGlf[A-Za-z0-9_=+/-]{20,}"),
    TokenFormat("nvidia-key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{64}", fixed=True),
    TokenFormat("nvidia-key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{30,120}"),
    TokenFormat("databricks-token", "dapi", _EDGE + r"(?P<v>dapi[0-9a-f]{32})(?:-[0-9])?\b", fixed=True),
    TokenFormat("digitalocean-token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}", fixed=True),
    TokenFormat("discord-webhook", "webhooks/", r"/api/webhooks/(?P<v>[0-9]{15,22}/[A-Za-z0-9_-]{20,100})"),
    TokenFormat("telegram-token", ":AA", _EDGE + r"(?P<v>[0-9]{8,10}:AA[A-Za-z0-9_-]{33})\b", fixed=True),
    TokenFormat("stripe-key", "k_", _EDGE + r"(?P<v>[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,255})"),
    TokenFormat("stripe-key", "whsec_", r"whsec_[A-Za-z0-9+/]{24,100}"),
    TokenFormat("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}"),
    TokenFormat("twilio-key", "SK", _EDGE + r"(?P<v>SK[0-9a-f]{32})\b", fixed=True),
    TokenFormat("replicate-token", "r8_", _EDGE + r"(?P<v>r8_[A-Za-z0-9]{37})\b", fixed=True),
    TokenFormat("groq-key", "gsk_", _EDGE + r"(?P<v>gsk_[A-Za-z0-9]{52})\b", fixed=True),
    TokenFormat("groq-key", "gsk_", _EDGE + r"(?P<v>gsk_[A-Za-z0-9]{30,100})", mixed=True),
    TokenFormat("xai-key", "xai-", _EDGE + r"(?P<v>xai-[A-Za-z0-9]{80})\b", fixed=True),
    TokenFormat("xai-key", "xai-", _EDGE + r"(?P<v>xai-[A-Za-z0-9]{40,120})", mixed=True),
    TokenFormat("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{48}", fixed=True),
    TokenFormat("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{32,100}", mixed=True),
    TokenFormat("fireworks-key", "fw_", _EDGE + r"(?P<v>fw_[A-Za-z0-9]{20,64})", mixed=True),
    TokenFormat("cerebras-key", "csk-", _EDGE + r"(?P<v>csk-[a-z0-9]{40,64})", mixed=True),
    TokenFormat("together-key", "tgp_v1_", r"tgp_v1_[A-Za-z0-9_-]{40,64}"),
    TokenFormat("jina-key", "jina_", r"jina_[A-Za-z0-9_-]{50,80}", mixed=True),
    TokenFormat("tavily-key", "tvly-", r"tvly-[A-Za-z0-9-]{20,64}", mixed=True),
    TokenFormat("langsmith-key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", fixed=True),
    TokenFormat("langfuse-key", "k-lf-", _EDGE + r"(?P<v>[sp]k-lf-" + _UUID + r")", fixed=True),
    TokenFormat("pinecone-key", "pcsk_", r"pcsk_[A-Za-z0-9_]{40,100}"),
    TokenFormat("vault-token", "hv", _EDGE + r"(?P<v>hv[sbr]\.[A-Za-z0-9_-]{20,300})"),
    TokenFormat("docker-token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,64}"),
    TokenFormat("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,80}"),
    TokenFormat("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}", fixed=True),
    TokenFormat("kaggle-token", "KGAT_", r"KGAT_[0-9a-f]{32}", fixed=True),
    TokenFormat("runpod-key", "rpa_", _EDGE + r"(?P<v>rpa_[A-Za-z0-9]{30,64})", mixed=True),
    TokenFormat("modal-token", "k-", _EDGE + r"(?P<v>ak-[A-Za-z0-9]{22})\b", fixed=True, mixed=True),
    TokenFormat("modal-token", "s-", _EDGE + r"(?P<v>as-[A-Za-z0-9]{22})\b", fixed=True, mixed=True),
    TokenFormat("modelscope-token", "ms-", _EDGE + r"(?P<v>ms-" + _UUID + r")\b", fixed=True),
    TokenFormat("alibaba-key-id", "LTAI", _EDGE + r"(?P<v>LTAI[A-Za-z0-9]{12,24})\b", mixed=True),
    TokenFormat("tencent-key-id", "AKID", _EDGE + r"(?P<v>AKID[A-Za-z0-9]{13,40})\b", mixed=True),
    TokenFormat("grafana-token", "gl", r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}", fixed=True),
    TokenFormat("grafana-token", "glc_", r"glc_[A-Za-z0-9+/=]{32,255}"),
    TokenFormat("sentry-token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{40,255}"),
    TokenFormat("atlassian-token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{30,300}"),
    TokenFormat("linear-key", "lin_api_", r"lin_api_[A-Za-z0-9]{40}", fixed=True),
    TokenFormat("notion-token", "ntn_", _EDGE + r"(?P<v>ntn_[A-Za-z0-9]{40,60})", mixed=True),
    TokenFormat("airtable-token", "pat", _EDGE + r"(?P<v>pat[A-Za-z0-9]{14}\.[0-9a-f]{64})", fixed=True),
    TokenFormat("artifactory-key", "AKCp", _EDGE + r"(?P<v>AKCp[A-Za-z0-9]{20,100})"),
    TokenFormat("artifactory-key", "cmVmdGtuOj", r"cmVmdGtuOj[A-Za-z0-9+/=_-]{20,100}"),
    TokenFormat("conda-token", "/t/", r"/t/(?P<v>[A-Za-z0-9-]{8,80})/"),
)

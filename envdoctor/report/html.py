"""A diagnosis as one HTML file: no script, nothing fetched, a policy that says so."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from envdoctor.findings import Certainty, Diagnosis, Finding, Outcome
from envdoctor.report.layout import counted_severities, finding_depths
from envdoctor.report.sanitise import visible
from envdoctor.report.summary import fact_rows, key_packages, version_words

_LIMIT = 190_000
_STYLE = """
:root{color-scheme:light dark;--e:#b42318;--w:#9a6700;--n:#175cd3;--o:#067647;
--d:#667085;--b:#f6f7f9;--l:#d0d5dd}
@media(prefers-color-scheme:dark){:root{--e:#f97066;--w:#fdb022;--n:#84caff;--o:#47cd89;
--d:#98a2b3;--b:#1d2430;--l:#344054}}
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}h3{font-size:1rem;margin:0}
article{border-left:4px solid var(--d);background:var(--b);
padding:.8rem 1rem;margin:1rem 0;border-radius:0 6px 6px 0}
.error{border-color:var(--e)}.warning{border-color:var(--w)}.note{border-color:var(--n)}
.error .k{color:var(--e)}.warning .k{color:var(--w)}.note .k{color:var(--n)}.k{font-weight:700}
.d1{margin-left:2rem}.d2{margin-left:4rem}.d3{margin-left:6rem}.ok{color:var(--o)}.dim{color:var(--d)}
pre{background:#0b0f19;color:#e6edf3;padding:.6rem .8rem;border-radius:6px;overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem}td,th{text-align:left;
padding:.2rem .8rem .2rem 0;border-bottom:1px solid var(--l)}
td{vertical-align:top;overflow-wrap:anywhere}code{overflow-wrap:anywhere}
"""


def render_html(diagnosis: Diagnosis) -> str:
    """Return a self-contained page of less than 200 KB; what does not fit is said to be left out."""
    head, tail = _head(diagnosis), _tail(diagnosis)
    room = _LIMIT - len(head.encode()) - len(tail.encode())
    articles: list[str] = []
    depths = finding_depths(diagnosis.findings)
    for number, finding in enumerate(diagnosis.findings):
        article = _article(finding, depths[finding.id])
        room -= len(article.encode())
        if room < 0:
            articles.append(
                f"<p class=dim>{len(diagnosis.findings) - number} more findings are left out here.</p>"
            )
            break
        articles.append(article)
    return head + "".join(articles) + tail


def _text(text: str) -> str:
    return escape(visible(text.encode("utf-8", "replace").decode()))


def _head(diagnosis: Diagnosis) -> str:
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    counted = counted_severities(diagnosis.findings)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<title>envdoctor: {counted}</title><style>{_STYLE}</style></head>\n<body>"
        f"<h1{'' if diagnosis.findings or _broken(diagnosis) else ' class=ok'}>envdoctor: {counted}</h1>\n"
        f"{_broken(diagnosis)}"
    )


def _broken(diagnosis: Diagnosis) -> str:
    return "".join(
        f"<p><strong>{_text(check.rule)} broke:</strong> {_text(check.reason or '')}</p>\n"
        for check in diagnosis.checks
        if check.outcome is Outcome.CRASHED
    )


def _article(finding: Finding, depth: int) -> str:
    doubt = "" if finding.certainty is Certainty.CERTAIN else f" <em>{finding.certainty.value}</em>"
    follows = (
        f"<p class=dim>follows from <code>{_text(finding.consequence_of or '')}</code></p>" if depth else ""
    )
    seen = "".join(
        f"<tr><td>{_text(e.fact)}<td>{_text(e.value)}<td class=dim>{_text(e.source)}"
        for e in finding.evidence
    )
    remedies = "".join(
        f"<p><strong>{'Do' if i == 0 else 'Or'}:</strong> {_text(r.text)}</p>"
        + (f"<pre>{_text(chr(10).join(r.commands))}</pre>" if r.commands else "")
        for i, r in enumerate(finding.remedies)
    )
    sources = "".join(f"<br>{_text(source)}" for source in finding.sources)
    return (
        f'<article class="{finding.severity.value} d{min(depth, 3)}">'
        f"<h3><span class=k>{finding.severity.value}</span> <code>{_text(finding.id)}</code>{doubt}</h3>"
        f"{follows}<p><strong>{_text(finding.summary)}</strong></p><p>{_text(finding.cause)}</p>"
        + (f"<table>{seen}</table>" if seen else "")
        + remedies
        + (f"<p class=dim>Sources:{sources}</p>" if sources else "")
        + "</article>\n"
    )


def _tail(diagnosis: Diagnosis) -> str:
    facts = "".join(
        f"<tr><th>{_text(r.label)}<td>{_text(r.value[:2000])}<td class=dim>{_text(r.source[:500])}"
        for r in fact_rows(diagnosis.facts)[:200]
    )
    packages = "".join(
        f"<tr><th>{_text(d.name)}<td>{_text(version_words(d)[:200])}" for d in key_packages(diagnosis.facts)
    )
    outcomes = [check.outcome for check in diagnosis.checks]
    counted = ", ".join(f"{outcomes.count(o)} {o.value}" for o in Outcome if o in outcomes)
    return (
        f"<h2>Facts</h2><table>{facts}</table>\n<h2>Packages</h2><table>{packages}</table>\n"
        f"<p class=dim>Checks: {counted or 'none'}.<br>envdoctor {_text(diagnosis.tool_version)}, "
        f"matrix {_text(diagnosis.matrix_version)} of {_text(diagnosis.matrix_date)}</p></body></html>\n"
    )

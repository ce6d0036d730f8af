"""The answer as one HTML file with a map of nodes and facts: no script, nothing fetched."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator

from envdoctor.findings import Severity
from envdoctor.fleet.answer import FleetAnswer, NodeFinding
from envdoctor.fleet.drift import Drift
from envdoctor.fleet.nodeset import fold
from envdoctor.fleet.report.map import fleet_map
from envdoctor.fleet.report.markup import text
from envdoctor.fleet.report.words import group_words, headline

_STYLE = """
:root{color-scheme:light dark;--e:#b42318;--w:#b54708;--n:#175cd3;--o:#067647;--d:#667085;--b:#f6f7f9;
--l:#d0d5dd;--same:#d3ecdc;--gap:#98a2b3}
@media(prefers-color-scheme:dark){:root{--e:#f97066;--w:#fdb022;--n:#84caff;--o:#47cd89;--d:#98a2b3;
--b:#1d2430;--l:#344054;--same:#1f4a36;--gap:#667085}}
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}.ok{color:var(--o)}.bad{color:var(--e)}
.dim{color:var(--d)}table{border-collapse:collapse;width:100%;font-size:.9rem}
td,th{text-align:left;padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--l);vertical-align:top}
td{overflow-wrap:anywhere}.map td,.map th{border:0;padding:.12rem .6rem .12rem 0;white-space:nowrap;
vertical-align:middle}.map td.m{width:62%;padding-right:.8rem}.map td:last-child{white-space:normal}
svg{display:block;width:100%;height:1.35rem}.t{height:1rem}.t text{font:11px system-ui,sans-serif;
fill:var(--d)}.same{fill:var(--same)}.error,.k-error{fill:var(--e);color:var(--e)}
.warning,.k-warning{fill:var(--w);color:var(--w)}.note,.k-note{fill:var(--n);color:var(--n)}
.silent{fill:var(--gap)}.second{opacity:.72}.third{opacity:.5}.accepted{opacity:.45}
article{border-left:4px solid var(--d);background:var(--b);padding:.7rem 1rem;margin:.8rem 0;
border-radius:0 6px 6px 0}article.error{border-color:var(--e);color:inherit}
article.warning{border-color:var(--w);color:inherit}article.note{border-color:var(--n);color:inherit}
h3{font-size:1rem;margin:0}pre{background:#0b0f19;color:#e6edf3;padding:.5rem .8rem;border-radius:6px;
overflow-x:auto}code{overflow-wrap:anywhere}p{margin:.35rem 0}.c{margin-left:2rem}
.key span{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 1rem;border-radius:2px;
vertical-align:-.1rem}.key .same{background:var(--same)}.key .error{background:var(--e)}
.key .warning{background:var(--w)}.key .note{background:var(--n)}.key .silent{background:var(--gap)}
"""
_MAX_ARTICLES = 200


def render_html(answer: FleetAnswer) -> str:
    """Return the page: headline, map, unreached nodes, drift, findings, kinds of nodes."""
    return "".join((_head(answer), fleet_map(answer), *_sections(answer), _foot(answer)))


def _set(nodes: Iterable[str]) -> str:
    return text(fold(nodes))


def _head(answer: FleetAnswer) -> str:
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    told = text(headline(answer))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<title>envdoctor fleet: {told}</title><style>{_STYLE}</style></head>\n<body>"
        f"<h1 class={'bad' if answer.exit_code == 1 else 'ok'}>{told}</h1>\n"
    )


def _sections(answer: FleetAnswer) -> Iterator[str]:
    if answer.unreached:
        rows = "".join(f"<tr><th>{_set(u.nodes)}<td>{text(u.reason)}" for u in answer.unreached)
        yield f"<h2>Unreached</h2><table>{rows}</table>\n"
    if answer.drift:
        yield "<h2>Drift</h2>" + "".join(_drift_article(drift) for drift in answer.drift[:_MAX_ARTICLES])
    if answer.findings:
        yield "<h2>Findings</h2>" + "".join(_finding_article(f) for f in answer.findings[:_MAX_ARTICLES])
    left = max(0, len(answer.drift) - _MAX_ARTICLES) + max(0, len(answer.findings) - _MAX_ARTICLES)
    if left:
        yield f"<p class=dim>{left} more are left out here; the JSON has them.</p>"
    yield from _comparison_section(answer)
    yield from _extra_sections(answer)
    rows = "".join(
        f"<tr><th>{_set(g.nodes)}<td>{len(g.nodes)}<td>{text(group_words(g))}" for g in answer.groups
    )
    yield f"<h2>Kinds of nodes</h2><table>{rows}</table>\n"


def _drift_article(drift: Drift) -> str:
    rows = "".join(
        f"<tr><td>{text('unknown: ' + v.reason if v.value is None else v.value)}"
        f"<td>{_set(v.nodes)}<td>{len(v.nodes)}"
        for v in drift.values
    )
    cause = drift.consequence_of
    accepted = " (accepted)" if drift.accepted else ""
    follows = f"<p class=dim>follows from {text(cause)}</p>" if cause else ""
    return (
        f'<article class="{drift.severity.value}{" c" if drift.consequence_of else ""}">'
        f"<h3>{_mark(drift.severity)} {text(drift.fact)} differs{accepted}</h3>"
        f"{follows}<p>{text(drift.row.why)}</p><table>{rows}</table>"
        f"<p class=dim>{text(drift.row.source)}</p></article>\n"
    )


def _mark(severity: Severity) -> str:
    return f'<span class="k-{severity.value}">{severity.value}</span>'


def _finding_article(one: NodeFinding) -> str:
    finding = one.finding
    remedies = "".join(
        f"<p><strong>{'Or' if i else 'Do'}:</strong> {text(r.text)}</p>"
        + (f"<pre>{text(chr(10).join(r.commands))}</pre>" if r.commands else "")
        for i, r in enumerate(finding.remedies)
    )
    return (
        f'<article class="{finding.severity.value}"><h3>{_mark(finding.severity)} '
        f"<code>{text(finding.id)}</code> on {_set(one.nodes)} ({len(one.nodes)})</h3>"
        f"<p><strong>{text(finding.summary)}</strong></p><p>{text(finding.cause)}</p>{remedies}</article>\n"
    )


def _comparison_section(answer: FleetAnswer) -> Iterator[str]:
    comparison = answer.comparison
    if comparison is None:
        return
    rows = "".join(
        f"<tr><th>{_mark(c.severity)} {text(c.fact)}<td>{text(c.was or 'unknown')} → "
        f"{text(c.now or 'unknown')}<td>{_set(c.nodes)}"
        for c in comparison.changes
    )
    for label, nodes in (("gone since then", comparison.missing), ("new since then", comparison.new)):
        rows += f"<tr><th>{label}<td><td>{_set(nodes)}" if nodes else ""
    yield f"<h2>Against {text(comparison.file)}</h2><table>{rows or '<tr><td>no change'}</table>\n"


def _extra_sections(answer: FleetAnswer) -> Iterator[str]:
    collective = answer.collective
    if collective is not None:
        told = f"{collective.outcome}{': ' + collective.reason if collective.reason else ''}"
        yield f"<h2>All-reduce over {collective.ranks} ranks</h2><p>{text(told)}</p>\n"
    for title, told_json in (("Pins", answer.pins), ("Profile", answer.profile)):
        if told_json is not None:
            yield f"<h2>{title}</h2><pre>{text(str(told_json.get('told', '')))}</pre>\n"


def _foot(answer: FleetAnswer) -> str:
    broken = "".join(f"<p>{text(r)} broke: {text(why)}</p>" for r, why in answer.crashed_checks.items())
    return (
        f"{broken}<p class=dim>envdoctor {text(answer.tool_version)}, matrix {text(answer.matrix_version)} "
        f"of {text(answer.matrix_date)}</p></body></html>\n"
    )

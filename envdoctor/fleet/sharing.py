"""The answer for a cluster as it may be shared: nodes are numbered, facts and findings redacted."""

from __future__ import annotations

from envdoctor.bundling.sharing import make_redactor, redact_value
from envdoctor.fleet.answer import FleetAnswer
from envdoctor.fleet.nodeset import natural_key


def redact_answer(answer: FleetAnswer) -> FleetAnswer:
    """Return the answer without what identifies persons and machines: `node[001-063]` is `<host-[1-63]>`."""
    redactor = make_redactor(*(group.facts for group in answer.groups))
    nodes = [one.nodes for one in answer.groups] + [one.nodes for one in answer.unreached]
    if answer.comparison is not None:
        nodes += [change.nodes for change in answer.comparison.changes]
    for node in sorted({node for some in nodes for node in some}, key=natural_key):
        redactor.learn_json({"hostname": node})
        redactor.redact_field("hostname", node)
    redactor.learn_json(answer.to_json())
    return redact_value(answer, redactor)

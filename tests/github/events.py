"""Events as GitHub's workflows get them, cut to what counts: recorded forms, invented people."""

from __future__ import annotations

import json
from typing import Any

PASTE = """### What happened

@maintainers please help!!! see #123 and <img src=x onerror=alert(1)> [click](https://example.com/evil)

```
trl==0.7.11
transformers==4.40.1
GPU: Tesla T4
```

ImportError: cannot import name 'top_k_top_p_filtering' from 'transformers' (/home/maria/@everyone/x.py)
"""


def issue(body: str | None, title: str = "trl does not import", login: str = "maria") -> dict[str, Any]:
    return {
        "url": "https://example.com/repos/o/r/issues/7",
        "number": 7,
        "title": title,
        "user": {"login": login, "type": "User"},
        "labels": [],
        "state": "open",
        "body": body,
    }


def event(body: str | None = PASTE, **more: Any) -> str:
    told = {"action": "opened", "issue": issue(body), "repository": {"full_name": "o/r"}, **more}
    return json.dumps({**told, "sender": {"login": "maria"}}, indent=2)


def comment_event(comment: str, by: str) -> str:
    told = {"body": comment, "user": {"login": by, "type": "User"}}
    return event("no details yet", action="created", comment=told)

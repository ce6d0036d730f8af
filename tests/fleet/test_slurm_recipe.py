"""The script of docs/fleet.md as Slurm's own Prolog, Epilog and HealthCheckProgram."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster, missing_programs, slurm_cluster

pytestmark = [pytest.mark.slurm, pytest.mark.root]
DOCS = Path(__file__).parents[2] / "docs" / "fleet.md"
EXPECTED = """
[[expect]]
nodes = "node002"
[expect.facts]
kernel = "1.2.*"
[[expect]]
nodes = "node003"
[expect.facts]
"ports.count" = 8
"""
WRONG = r"envdoctor: node002 kernel is \S+: 1\.2\.\* is expected\."


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script as the page has it, with the paths of this machine."""
    if missing := missing_programs():
        pytest.skip(f"Slurm is not installed: {', '.join(missing)}")
    text = re.search(r"^    #!/bin/sh\n(?:    .*\n|\n)+", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert text is not None
    (tmp_path / "expect.toml").write_text(EXPECTED)
    here = textwrap.dedent(text[0]).replace("/opt/envdoctor/bin", str(Path(sys.executable).parent))
    here = here.replace("/etc/slurm/envdoctor.toml", str(tmp_path / "expect.toml"))
    path = tmp_path / "check"
    path.write_text(here.replace("export PATH", f"export SLURM_CONF={tmp_path}/slurm.conf\nexport PATH", 1))
    path.chmod(0o755)
    return path


@contextmanager
def running(script: Path, settings: str) -> Iterator[SlurmCluster]:
    with slurm_cluster(script.parent, 3, more=settings) as cluster:
        yield cluster


def states(cluster: SlurmCluster) -> dict[str, tuple[str, str]]:
    lines = cluster.ask("sinfo", "--noheader", "--Node", "--format=%N|%T|%E").splitlines()
    return {name: (state, why.strip()) for name, state, why in (line.split("|", 2) for line in lines)}


def test_a_prolog_keeps_jobs_from_a_node_that_is_wrong_and_from_no_other(script: Path) -> None:
    with running(script, f"Prolog={script}\nEpilog={script}\n") as cluster:
        ran = {
            node: subprocess.run(
                ["srun", f"--nodelist={node}", "true"],
                env=dict(cluster.environ),
                capture_output=True,
                check=False,
                timeout=100,
            )
            for node in ("node002", "node003")
        }
        known = states(cluster)
    assert b"prolog failed" in ran["node002"].stderr
    assert ran["node003"].returncode == 0
    assert known["node002"][0] in ("draining", "drained")
    assert re.fullmatch(WRONG, known["node002"][1])
    assert {known["node001"][1], known["node003"][1]} == {"none"}


def test_a_health_check_drains_with_the_reason_and_never_for_what_is_unknown(script: Path) -> None:
    check = script.with_name("check-later")
    settings = f"HealthCheckProgram={check}\nHealthCheckInterval=2\nHealthCheckNodeState=ANY\n"
    with running(script, settings) as cluster:
        check.symlink_to(script)
        for _ in range(300):
            known = states(cluster)
            if known["node002"][0] == "drained":
                break
            time.sleep(0.2)
        cluster.ask("scontrol", "update", "NodeName=node002", "State=DRAIN", "Reason=mine")
        time.sleep(3)
        later = states(cluster)
    assert re.fullmatch(WRONG, known["node002"][1])
    assert later["node002"][1] == "mine"
    assert {later["node001"][1], later["node003"][1]} == {"none"}

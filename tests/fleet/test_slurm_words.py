"""What Slurm's programs write, read without Slurm."""

from __future__ import annotations

from envdoctor.fleet.reply import Reply
from envdoctor.fleet.transports.slurm import salloc_command
from envdoctor.fleet.transports.slurm_nodes import cover, parse_sinfo
from envdoctor.fleet.transports.slurm_step import Step
from envdoctor.fleet.transports.slurm_steps import srun_command

FACTS = "envdoctor:{node}:1/1:eJyrrgUAAXUA+Q=="


def test_states_say_which_nodes_may_be_asked_and_why_not_the_others() -> None:
    nodes = parse_sinfo(
        "node001|idle|main*|up|none\nnode002|mixed-|main*|up|none\nnode003|down*|main*|up|Not responding\n"
        "node004|drained|main*|up|bad DIMM | slot 3\nnode005|allocated|main*|up|none\n"
        "node006|idle~|main*|up|none\n"
        "node001|idle|gpu|up|none\nnode007|idle|old|down|none\nnode008|completing|main*|up|none\n"
    )
    assert [name for name, node in nodes.items() if node.may_be_asked] == [
        *("node001", "node002", "node005", "node008")
    ]
    assert nodes["node001"].partitions == ["main", "gpu"]
    assert nodes["node003"].told() == "Slurm says it is down and does not respond (Not responding)"
    assert nodes["node004"].told() == "Slurm says it is drained (bad DIMM | slot 3)"
    assert nodes["node005"].told(["17", "18"]) == "Slurm says it is allocated (job 17, 18)"
    assert nodes["node001"].told((), "week") == "Slurm says it is reserved (reservation week)"
    assert nodes["node007"].told() == "its partition is not up: old is down"


def test_few_partitions_cover_all_nodes() -> None:
    nodes = {"a1": ["all", "gpu"], "a2": ["all", "gpu"], "c1": ["all"], "l1": ["login"]}
    assert cover(nodes) == {"all": ("a1", "a2", "c1"), "login": ("l1",)}


def test_no_node_is_named_that_must_be_free() -> None:
    command = salloc_command("gpu", 512, ["node007"], 3, ["--account=a"])
    assert {"--nodes=1-512", "--partition=gpu", "--exclude=node007", "--account=a"} <= set(command)
    assert not any(word.startswith("--nodelist") for word in command)


def test_one_task_a_node_and_none_ends_the_others() -> None:
    command = srun_command("17", ["node1", "node2"], "python3 -", ["--gres=gpu:8"])
    assert {"--jobid=17", "--nodelist=node[1-2]", "--ntasks=2", "--no-kill", "--kill-on-bad-exit=0"} <= set(
        command
    )
    assert command[-4:] == ["--gres=gpu:8", "sh", "-c", "exec python3 -"]


def hear(*lines: str, nodes: int = 4) -> tuple[list[Reply], Step]:
    replies: list[Reply] = []
    step = Step({f"node{n}" for n in range(1, nodes + 1)}, replies.append)
    for line in lines:
        step.hear("stdout" if "envdoctor:" in line else "stderr", line.encode())
    return replies, step


def placed(nodes: int = 4) -> list[str]:
    return [f"srun: launching StepId=2.0 on host node{n + 1}, 1 tasks: {n}" for n in range(nodes)]


def test_how_tasks_ended_is_told_of_their_nodes() -> None:
    replies, step = hear(
        *placed(),
        "1: sh: 1: python3: not found",
        "2: Traceback (most recent call last):",
        "2: MemoryError",
        "srun: error: node2: task 1: Exited with exit code 127",
        "srun: error: node3: task 2: Exited with exit code 1",
        "srun: error: node[1,4]: tasks 0,3: Killed",
    )
    assert step.id == "2.0"
    assert step.settle(None) == set()
    assert {reply.node: reply.reason for reply in replies} == {
        "node1": "the probe was ended: Killed",
        "node2": "no Python there: sh: 1: python3: not found",
        "node3": "the probe ended with status 1: MemoryError",
        "node4": "the probe was ended: Killed",
    }


def test_after_a_failed_launch_the_others_wait_to_be_asked_again() -> None:
    replies, step = hear(
        *placed(),
        "srun: error: Task launch for StepId=2.0 failed on node node3: Communication connection failure",
        "srun: error: Application launch failed: Communication connection failure",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        "srun: error: node[1-2,4]: tasks 0-1,3: Killed",
    )
    assert step.settle(None) == {"node1", "node2", "node4"}
    assert [reply.node for reply in replies] == ["node3"]


def test_a_step_that_was_never_made_is_asked_again() -> None:
    replies, step = hear("srun: error: Unable to create step for job 2: Requested nodes are busy")
    assert step.settle(None) == {"node1", "node2", "node3", "node4"}
    assert (replies, step.complaints) == ([], ["Unable to create step for job 2: Requested nodes are busy"])


def test_a_task_speaks_for_the_node_it_was_placed_on_and_no_other() -> None:
    replies, step = hear(
        *placed(),
        "2: " + FACTS.format(node="node1"),
        "0: " + FACTS.format(node="node1"),
        "3: " + FACTS.format(node="node99"),
    )
    assert step.settle(None) == set()
    assert {reply.node: reply.reason or reply.text for reply in replies} == {
        "node1": b"{}",
        "node2": "it answered nothing",
        "node3": "it answered in the name of node1, and only its own is believed",
        "node4": "it answered in the name of node99, and only its own is believed",
    }


def test_what_slurm_says_among_a_tasks_words_is_not_the_nodes() -> None:
    replies, step = hear(
        *placed(1), "0: slurmstepd-node1: error: *** STEP 2.0 ON node1 CANCELLED AT 11:29 ***", nodes=1
    )
    step.settle("no answer within 8 s")
    assert [reply.reason for reply in replies] == ["no answer within 8 s"]

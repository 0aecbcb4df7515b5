"""Reads the access log of a server of one or more processes between marks: requests whose paths nothing answers."""

from __future__ import annotations

from time import monotonic

from tests.support.http_client import HttpClient
from tests.support.nodes import BalancedNodes
from tests.support.server_process import WORKERS, ServerProcess
from tests.support.timeouts import TIMEOUT_S


def log_since_mark(server: ServerProcess | BalancedNodes, mark: str) -> str:
    """
    Set a mark. Returns what was logged since the mark before.

    Each process writes its log in order, but a little after it has answered. So each worker of each node gets the mark.
    They are known by the beginning of the ids of their requests.
    """
    request = f" /mark-{mark} "
    marked: set[str] = set()
    sent, ends_at = 0, monotonic() + TIMEOUT_S
    while len(marked) < server.node_count * int(WORKERS[0]):
        assert monotonic() < ends_at, "not all processes get connections"
        marked.add(HttpClient(server.url).get(request.strip()).headers["x-request-id"].partition("-")[0])
        sent += 1
    assert len(server.lines(request, sent)) == sent
    before, _, _ = server.output.rpartition(request)
    lines = before.splitlines()[:-1]
    earlier = [number for number, line in enumerate(lines) if " /mark-" in line and request not in line]
    return "\n".join(lines[earlier[-1] + 1 :] if earlier else lines)

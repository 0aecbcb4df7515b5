"""Advisories of servers under test."""

from __future__ import annotations

from tests.support.http_client import HttpClient
from tests.support.timeouts import polled


def wait_for_advisories(api: HttpClient) -> None:
    """Ask a server until it has loaded its advisories; the test's time limit ends the wait."""
    polled(lambda: not api.get("/advisories/data").json["problem"])

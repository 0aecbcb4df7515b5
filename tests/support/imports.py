"""Imports through the API, as a client of it starts them."""

from __future__ import annotations

from typing import Any

from tests.support.http_client import HttpClient


def take(client: HttpClient, kind: str, source: object, into: str, **more: Any) -> dict[str, Any]:
    """The result of an import, once it is done."""
    reply = client.post_json("/api/import?wait=300", {"kind": kind, "source": str(source), "into": into, **more})
    assert reply.status == 200, reply.text
    return reply.json


def counts(result: dict[str, Any]) -> tuple[int, int, int]:
    """The numbers of files that were taken in, that were there already, and of what was left out."""
    return result["files"], result["present"], result["left_out_count"]

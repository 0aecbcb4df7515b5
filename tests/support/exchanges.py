"""Exchanges of identity tokens at two processes of one server, or at two nodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.http_client import Reply
from tests.support.issuer import Issuer
from tests.support.python_packages import make_wheel
from tests.support.workers import Connection

JSON = {"Content-Type": "application/json"}
ROUNDS = 6


def check_exchanges(pair: Sequence[Connection], issuer: Issuer) -> None:
    """An identity token is exchanged once, wherever; publishers and their tokens are the same at both at once."""
    one, other = pair
    [found] = [each for each in one.ask_json("GET", "/api/repository")["items"] if each["name"] == "py"]
    publishers = f"/api/repository/{found['id']}/publishers"
    added = one.ask_json("POST", publishers, {"issuer": "forge", "claims": {"repository": "acme/*"}})
    for _ in range(ROUNDS):
        body = {"token": issuer.token(), "repository": "main/py"}
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda each, body=body: _exchange(each, body), pair))
        assert sorted(each.status for each in answers) == [200, 422], [each.text for each in answers]
        assert [_exchange(each, body).status for each in pair] == [422, 422]
    [token] = [each.json["token"] for each in answers if each.status == 200]
    bearer = {"Authorization": f"Bearer {token}"}
    for number, each in enumerate(pair):
        assert _put(each, f"{number}.0", bearer).status == 201
    assert other.ask("DELETE", f"{publishers}/{added['id']}").status == 204
    for number, each in enumerate(pair):
        assert _put(each, f"{number}.1", bearer).status == 403
        assert _exchange(each, {"token": issuer.token(), "repository": "main/py"}).status == 422


def _exchange(connection: Connection, body: dict[str, Any]) -> Reply:
    return connection.ask("POST", "/api/auth/oidc", json.dumps(body).encode(), auth=None, headers=JSON)


def _put(connection: Connection, version: str, headers: dict[str, str]) -> Reply:
    filename, data = make_wheel("acme-shared", version)
    path = f"/repositories/main/py/acme-shared/{version}/{filename}"
    return connection.ask("PUT", path, data, auth=None, headers=headers)

"""Values that the management API must refuse with a reason: each of these was once accepted, or answered with 500."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from tests.support.images import OCI_IMAGE, OCI_LAYER, digest_of, make_image
from tests.support.memory_server import Stack, running_stacks


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path) -> Any:
    async with running_stacks(tmp_path) as make:
        yield await make()


def cursor(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("path", ["/audit", "/user/token"])
@pytest.mark.parametrize("number", [-1, 2**63, 10**30])
async def test_a_cursor_larger_than_the_catalog_can_store_is_refused(stack: Stack, path: str, number: int) -> None:
    assert (await stack.api("GET", f"{path}?cursor={cursor(number)}")).status == 422


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
async def test_an_expiry_that_does_not_exist_in_utc_is_refused(stack: Stack, time: str) -> None:
    reply = await stack.api("POST", "/user/token", {"name": "ci", "expires_at": time})
    assert (reply.status, reply.pointer) == (422, "/expires_at")
    made = await stack.ok("POST", "/user/token", {"name": "ci"})
    reply = await stack.api("PATCH", f"/user/token/{made['id']}", {"expires_at": time})
    assert (reply.status, reply.pointer) == (422, "/expires_at")


async def test_a_form_of_very_many_fields_is_refused(stack: Stack) -> None:
    form = "&".join(f"field{number}=1" for number in range(200)).encode()
    assert (await stack.api("POST", "/auth/token", raw=form, who=None)).status == 422


async def test_a_quota_larger_than_the_catalog_can_store_is_refused(stack: Stack) -> None:
    assert (await stack.api("POST", "/project", {"key": "large", "quota": 2**63})).status == 422
    assert (await stack.api("POST", "/project", {"key": "large", "quota": 2**63 - 1})).status == 201


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/repository", {"name": "py\n", "storage": "main", "format": "python"}),
        ("POST", "/storage", {"name": "disk\n"}),
        ("POST", "/project", {"key": "acme\n"}),
        ("POST", "/user/token", {"name": "ci\n"}),
        ("POST", "/users", {"username": "alice", "email": "alice@example.org\n"}),
        ("PATCH", "/user/me", {"name": "Alice\n"}),
    ],
)
async def test_no_name_ends_with_a_line_feed(stack: Stack, method: str, path: str, body: dict[str, str]) -> None:
    assert (await stack.api(method, path, body)).status == 422


WRONG_JSON = [
    b'{"a": ' + b"1" * 5000 + b"}",
    b'{"name": ' + b"1" * 5000 + b"}",
    b"\xef\xbb\xbf{}",
    b'{"name": "\xff"}',
    b"[" * 5000,
    b'{"name": ' + b"[" * 5000,
    b'{"a": NaN}',
    b'{"name": "\\ud800"}',
    b"\xff\xfe{\x00}\x00",
    b"{",
]


@pytest.mark.parametrize("body", WRONG_JSON, ids=range(len(WRONG_JSON)))
async def test_a_body_that_is_not_json_is_refused_with_its_reason(stack: Stack, body: bytes) -> None:
    await stack.add_repository()
    await stack.add_repository("node", format="npm")
    await stack.add_repository("images", format="docker")
    manifest = {"Content-Type": "application/vnd.oci.image.manifest.v1+json"}
    for method, path, fields in (
        ("POST", "/api/users", {}),
        ("POST", "/api/storage", {}),
        ("PATCH", "/api/user/me", {}),
        ("PUT", "/api/repository/main%2Fpy/config", {}),
        ("POST", "/api/repository/main%2Fpy/gc", {}),
        ("PUT", "/repositories/main/node/demo", {}),
        ("PUT", "/repositories/main/node/-/user/org.couchdb.user:admin", {}),
        ("POST", "/repositories/main/node/-/npm/v1/tokens", {}),
        ("POST", "/repositories/main/node/-/npm/v1/security/advisories/bulk", {}),
        ("PUT", "/repositories/main/node/-/package/demo/dist-tags/x", {}),
        ("PUT", "/v2/main/images/app/manifests/v1", manifest),
        ("POST", "/repositories/main/py/pypi/demo/1.0/yank", {"Content-Type": "application/json"}),
    ):
        reply = await stack.call(method, path, raw=body, headers=fields)
        assert 400 <= reply.status < 500, (path, reply.status, reply.body)
        text = reply.body.decode()
        for word in ("utf-8-sig", "codec", "sys.", "recursion", "Errno", "Traceback", "object at 0x"):
            assert word not in text, (path, text)
        assert len(text) < 600, (path, text)


async def test_a_long_list_of_errors_is_cut(stack: Stack) -> None:
    await stack.add_repository("images", format="docker")
    layers = [{"mediaType": OCI_LAYER, "digest": digest_of(b"%d" % at), "size": 1} for at in range(1000)]
    image = make_image(layers=layers)
    reply = await stack.call(
        "PUT", "/v2/main/images/app/manifests/v1", raw=image.manifest, headers={"Content-Type": OCI_IMAGE}
    )
    assert reply.status == 400
    assert len(reply.json["errors"]) == 100

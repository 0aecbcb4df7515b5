"""Pulls beside a purge: what it removes while a request is answered is fetched again."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.formats.container.proxied.blobs import UpstreamBlobs
from pkgrepo.formats.container.proxied.manifests import UpstreamManifests
from tests.support.images import digest_of
from tests.support.inprocess_server import until

from .conftest import ONE, Mirrors

BLOB = f"app/blobs/{digest_of(ONE.blobs[1])}"


async def purge(mirrors: Mirrors) -> None:
    found = await mirrors.stack.ok("GET", "/repository/find-id/main/mirror")
    await mirrors.stack.ok("POST", f"/repository/{found['id']}/cache/purge", {})


@pytest.mark.parametrize("reference", ["1", ONE.digest])
async def test_manifest_that_is_purged_before_it_is_read(
    mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    await mirrors.add()
    mirrors.up.push("app", ONE, "1")
    ensure, purged = UpstreamManifests.ensure, []

    async def then_purge(self: UpstreamManifests, *args: Any, **more: Any) -> Any:
        found = await ensure(self, *args, **more)
        if not purged:
            purged.append(True)
            await purge(mirrors)
        return found

    monkeypatch.setattr(UpstreamManifests, "ensure", then_purge)
    assert (await mirrors.get(f"app/manifests/{reference}")).body == ONE.manifest
    assert purged
    assert (await mirrors.get("app/manifests/2")).status == 404


async def test_blob_that_is_purged_after_it_was_found(mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch) -> None:
    await mirrors.add()
    mirrors.up.push("app", ONE, "1")
    for path in ("app/manifests/1", BLOB):
        await mirrors.get(path)
    await until(lambda: not len(mirrors.stack.assembly._proxies.transfers))
    find, purged = UpstreamBlobs.find, []

    async def then_purge(self: UpstreamBlobs, *args: Any) -> Any:
        found = await find(self, *args)
        if found is not None and not purged:
            purged.append(True)
            await purge(mirrors)
        return found

    monkeypatch.setattr(UpstreamBlobs, "find", then_purge)
    reply = await mirrors.get(BLOB)
    assert (reply.status, reply.body, purged) == (200, bytes(ONE.blobs[1]), [True])
    await until(lambda: not len(mirrors.stack.assembly._proxies.transfers))

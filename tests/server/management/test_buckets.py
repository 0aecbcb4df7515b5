"""Storages in buckets: added, used, changed and removed, with a real S3 server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from twisted.internet import threads
from zope.interface.verify import verifyObject

from pkgrepo.errors import BlobMissing
from pkgrepo.interfaces import IBlobAddresses
from tests.support.certificates import write_certificate
from tests.support.host_names import host_names
from tests.support.inprocess_server import until_value
from tests.support.memory_server import WITHOUT_CONDA, Stack
from tests.support.python_packages import make_wheel
from tests.support.s3_servers import BUCKET, KEY, S3Server, s3_server
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


def storage_in(s3: S3Server, prefix: str, name: str = "cloud", **changes: Any) -> dict[str, Any]:
    return {"name": name, "type": "S3", "settings": {**s3.settings(prefix), **changes}}


async def test_a_storage_in_a_bucket_is_made_tested_and_removed(stack: Stack, s3: S3Server) -> None:
    body = storage_in(s3, "made")
    reply = await stack.api("POST", "/storage", body)
    assert reply.status == 201, reply.body.decode()
    made = reply.json
    assert made["type"] == "S3"
    assert made["settings"] == {
        "path": f"{s3.endpoint}/{BUCKET}/made/",
        "readable_layout": False,
        "endpoint": s3.endpoint,
        "bucket": BUCKET,
        "region": "us-east-1",
        "prefix": "made/",
        "path_style": True,
        "access_key_id": KEY.id,
    }
    assert made["usage"] == {"bytes": 0, "blobs": 0, "free_bytes": None, "total_bytes": None}
    assert KEY.secret not in json.dumps(await stack.ok("GET", "/audit"))
    assert (await stack.api("POST", "/storage", body)).status == 200
    assert (await stack.ok("POST", "/storage/cloud/check", {}))["ok"]
    # Another storage does not get the same place, and the place of a removed one is free again.
    other = await stack.api("POST", "/storage", storage_in(s3, "made", name="other"))
    assert other.status == 422
    assert made["id"] in other.body.decode()
    await stack.ok("DELETE", "/storage/cloud")
    assert (await stack.api("POST", "/storage", body)).status == 201


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bucket": None}, "endpoint and bucket"),
        ({"secret_access_key": None}, "an id and a secret"),
        ({"secret_access_key": "wrong"}, "SignatureDoesNotMatch"),
        ({"bucket": "no-such-bucket"}, "NoSuchBucket"),
        ({"endpoint": "http://127.0.0.1:1"}, "no connection"),
        ({"path": "/srv"}, "no path"),
        ({"endpoint": "http://user:password@host"}, "endpoint"),
        ({"region": "up/down"}, "region"),
        ({"redirect_from": "much"}, "a size such as 64MiB"),
        ({"redirect_from": -1}, "a size such as 64MiB"),
        ({"redirect_from": "64KiB"}, "more than 64KiB"),
        ({"redirect_from": "2000TiB"}, "at most 1PiB"),
        ({"ca_file": "authority.pem"}, "begins with a slash"),
        ({"ca_file": "/no/such/authority.pem"}, "no readable file of certificates"),
    ],
)
async def test_a_bucket_that_cannot_be_used_is_refused(
    stack: Stack, s3: S3Server, changes: dict[str, Any], sentence: str
) -> None:
    reply = await stack.api("POST", "/storage", storage_in(s3, "refused", **changes))
    assert reply.status in (400, 422), reply.body.decode()
    assert sentence in reply.body.decode()
    assert KEY.secret not in reply.body.decode()


async def test_packages_are_published_and_read_in_a_bucket(stack: Stack, s3: S3Server) -> None:
    await stack.ok("POST", "/storage", storage_in(s3, "used"))
    await stack.add_repository("py", storage="cloud")
    filename, data = make_wheel("cloudy", "1.0", pad=300_000)
    path = f"/repositories/cloud/py/cloudy/1.0/{filename}"
    assert (await stack.call("PUT", path, raw=data)).status == 201
    for _ in range(2):  # from the storage, and by an answer that is kept
        assert (await stack.call("GET", path, who=None)).body == data
        part = await stack.call("GET", path, who=None, headers={"Range": "bytes=100000-100009"})
        assert (part.status, part.body) == (206, data[100_000:100_010])
    await stack.publish("cloud/py", "cloudy", "1.1")
    found = await stack.ok("GET", "/storage/cloud")
    assert found["usage"]["blobs"] >= 2


async def use(stack: Stack) -> None:
    """Publish into the storage, in one part and in several, and read."""
    await stack.add_repository("py", storage="cloud")
    filename, data = make_wheel("cloudy", "1.0", pad=12_000_000)
    path = f"/repositories/cloud/py/cloudy/1.0/{filename}"
    assert (await stack.call("PUT", path, raw=data)).status == 201
    assert (await stack.call("GET", path, who=None)).body == data
    await stack.publish("cloud/py", "cloudy", "1.1")


async def test_a_bucket_with_a_certificate_of_a_private_authority(stack: Stack, tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    with s3_server(None, None, "--cert", certificate, "--key", key) as s3:
        reply = await stack.api("POST", "/storage", storage_in(s3, "distrusted"))
        assert reply.status == 422, reply.body.decode()
        assert "certificate is not trusted" in reply.body.decode()
        made = await stack.ok("POST", "/storage", storage_in(s3, "trusted", ca_file=str(certificate)))
        assert made["settings"]["ca_file"] == str(certificate)
        await use(stack)
        changed = await stack.api("PATCH", "/storage/cloud", {"settings": {"ca_file": ""}})
        assert changed.status == 422, changed.body.decode()
        assert "certificate is not trusted" in changed.body.decode()


async def test_a_bucket_may_be_named_in_the_host(stack: Stack) -> None:
    with s3_server(None, None, "--virtual-domain", "s3.test") as s3:
        port = urlsplit(s3.endpoint).port
        with host_names(**{f"{BUCKET}.s3.test": "127.0.0.1", "s3.test": ""}):
            place = storage_in(s3, "named", endpoint=f"http://s3.test:{port}", path_style=False)
            made = await stack.ok("POST", "/storage", place)
            assert made["settings"]["path_style"] is False
            await use(stack)


async def test_clients_get_large_files_from_the_bucket_itself(stack: Stack, s3: S3Server) -> None:
    made = await stack.ok("POST", "/storage", storage_in(s3, "redirected", redirect_from="100KiB"))
    assert made["settings"]["redirect_from"] == 102_400
    await stack.add_repository("py", storage="cloud", visibility="private")
    files = {}
    for version, pad in (("1.0", 300_000), ("2.0", 80_000)):
        filename, data = make_wheel("cloudy", version, pad=pad)
        files[version] = f"/repositories/cloud/py/cloudy/{version}/{filename}", data
        assert (await stack.call("PUT", files[version][0], raw=data)).status == 201
    path, data = files["1.0"]
    for _ in range(2):  # by the handler, and by an answer that is kept
        sent = await stack.call("GET", path)
        assert (sent.status, sent.body, sent.headers["cache-control"]) == (307, b"", "no-store")
        got = await threads.deferToThread(requests.get, sent.headers["location"], timeout=TIMEOUT_S)
        assert (got.status_code, got.content) == (200, data)
        assert parse_qs(urlsplit(sent.headers["location"]).query)["X-Amz-Expires"] == ["300"]
        assert (await stack.call("GET", path, who=None)).status in (401, 403, 404)
        head = await stack.call("HEAD", path)
        assert (head.status, head.headers["content-length"]) == (200, str(len(data)))
        assert (await stack.call("GET", path, headers={"If-None-Match": head.headers["etag"]})).status == 304
        part = await stack.call("GET", path, headers={"Range": "bytes=100000-100009"})
        assert (part.status, part.body) == (206, data[100_000:100_010])
        small = await stack.call("GET", files["2.0"][0])
        assert (small.status, small.body) == (200, files["2.0"][1])
    core = stack.assembly.core
    store = await core.stores.open(next(each for each in core.registry.storages() if each.name == "cloud"))
    assert verifyObject(IBlobAddresses, store.addresses)
    with pytest.raises(BlobMissing):
        await store.addresses.sign("no locator")
    signed = sent.headers["location"]
    forged = signed[:-1] + ("0" if signed[-1] != "0" else "1")
    assert (await threads.deferToThread(requests.get, forged, timeout=TIMEOUT_S)).status_code == 403
    changed = await stack.ok("PATCH", "/storage/cloud", {"settings": {"redirect_from": 0}})
    assert "redirect_from" not in changed["settings"]
    assert (await stack.call("GET", path)).body == data


@pytest.mark.folder("a storage is changed that is in a folder")
async def test_a_storage_in_a_folder_redirects_nobody(stack: Stack) -> None:
    settings = {"redirect_from": "64MiB"}
    for method, path, body in (
        ("POST", "/storage", {"name": "disk", "settings": settings}),
        ("PATCH", "/storage/main", {"settings": settings}),
    ):
        reply = await stack.api(method, path, body)
        assert (reply.status, "no redirect_from" in reply.body.decode()) == (422, True)


async def test_what_is_lost_in_the_bucket_is_said_and_the_server_goes_on(stack: Stack, s3: S3Server) -> None:
    await stack.ok("POST", "/storage", storage_in(s3, "lost"))
    await stack.add_repository("py", storage="cloud")
    filename, data = make_wheel("cloudy", "1.0", pad=300_000)
    path = f"/repositories/cloud/py/cloudy/1.0/{filename}"
    assert (await stack.call("PUT", path, raw=data)).status == 201
    assert (await stack.call("GET", path, who=None)).status == 200
    core = stack.assembly.core
    storage = next(each for each in core.registry.storages() if each.name == "cloud")
    store = await core.stores.open(storage)
    for locator, _, _ in await store.scan():
        await store.delete(locator)
    for _ in range(2):
        assert (await stack.call("GET", path, who=None)).status >= 400
    assert (await stack.ok("POST", "/storage/cloud/check", {}))["ok"]


async def test_an_access_key_is_changed_and_checked(stack: Stack, s3: S3Server) -> None:
    await stack.ok("POST", "/storage", storage_in(s3, "rotated"))
    key = {"access_key_id": KEY.id, "secret_access_key": KEY.secret}
    wrong = await stack.api("PATCH", "/storage/cloud", {"settings": {**key, "secret_access_key": "wrong"}})
    assert (wrong.status, "SignatureDoesNotMatch" in wrong.body.decode()) == (422, True)
    assert (await stack.api("PATCH", "/storage/cloud", {"settings": {"endpoint": "http://127.0.0.1:1"}})).status == 422
    assert (await stack.api("PATCH", "/storage/cloud", {"settings": {"bucket": "another"}})).status == 409
    assert (await stack.api("PATCH", "/storage/cloud", {"settings": key})).status == 200
    assert (await stack.ok("POST", "/storage/cloud/check", {}))["ok"]


async def test_a_server_without_its_key_starts_and_takes_the_access_key_again(
    make_server: Any, s3: S3Server, tmp_path: Path
) -> None:
    first = await make_server()

    def api(server: Any, method: str, path: str, body: Any = None) -> Any:
        url = f"{server.url}{path}"
        return threads.deferToThread(requests.request, method, url, json=body, auth=server.admin, timeout=TIMEOUT_S)

    assert (await api(first, "POST", "/api/storage", storage_in(s3, "sealed"))).status_code == 201
    repository = {"name": "py", "storage": "cloud", "format": "python", "config": {"type": "Hosted"}}
    assert (await api(first, "POST", "/api/repository", repository)).status_code == 201
    filename, data = make_wheel("cloudy", "1.0", pad=100_000)

    def upload(server: Any) -> Any:
        url = f"{server.url}/repositories/cloud/py/cloudy/1.0/{filename}"
        return threads.deferToThread(requests.put, url, data=data, auth=server.admin, timeout=TIMEOUT_S)

    await first.stop()
    (tmp_path / "data" / "credentials.key").unlink()
    server = await make_server()
    refused = await upload(server)
    assert (refused.status_code, "key" in refused.text) == (503, False)
    assert (await api(server, "PATCH", "/api/storage/cloud", {"settings": {"region": "eu-1"}})).status_code == 409
    key = {"access_key_id": KEY.id, "secret_access_key": KEY.secret}
    changed = await api(server, "PATCH", "/api/storage/cloud", {"settings": key})
    assert changed.status_code == 200, changed.text
    assert (await upload(server)).status_code == 201


async def test_what_is_deleted_is_collected_from_the_bucket(stack: Stack, s3: S3Server) -> None:
    await stack.ok("POST", "/storage", storage_in(s3, "collected"))
    await stack.add_repository("py", storage="cloud", config=WITHOUT_CONDA)
    await stack.publish("cloud/py", "cloudy", "1.0", pad=100_000)
    await stack.publish("cloud/py", "cloudy", "1.1", pad=100_000)
    core = stack.assembly.core
    store = await core.stores.open(next(each for each in core.registry.storages() if each.name == "cloud"))
    before = len(await store.scan())
    done = await stack.ok("DELETE", "/repository/cloud%2Fpy/packages?purge=true", {"paths": ["cloudy/1.0"]})
    assert done["deleted"] == ["cloudy/1.0"]
    await stack.ok("POST", "/repository/cloud%2Fpy/gc", {"grace_seconds": 0})
    assert 0 < len(await store.scan()) < before


async def test_a_proxy_keeps_its_files_and_documents_in_a_bucket(stack: Stack, s3: S3Server, upstream: Any) -> None:
    await stack.ok("POST", "/storage", storage_in(s3, "proxy"))
    route = {"url": upstream.url, "name": "up"}
    config = {"type": "Proxy", "proxy": {"routes": [route]}}
    await stack.add_repository("mirror", format="npm", storage="cloud", config=config)
    tarball = upstream.add("read", pad=300_000)
    path = f"/repositories/cloud/mirror{upstream.tarball_path('read', '1.0.0')}"
    for _ in range(2):
        document = await stack.call("GET", "/repositories/cloud/mirror/read", who=None)
        assert list(document.json["versions"]) == ["1.0.0"]
        assert (await stack.call("GET", path, who=None)).body == tarball
    core = stack.assembly.core
    await until_value(1, core.catalog, "SELECT COUNT(*) FROM file")
    store = await core.stores.open(next(each for each in core.registry.storages() if each.name == "cloud"))
    assert len(tarball) in [size for _, size, _ in await store.scan()]

"""The upstreams of tests of proxies: what they say, how they misbehave, and what they record."""

import gzip
import http.client
import json
import ssl
import threading

import pytest

from tests.support.certificates import write_certificate
from tests.support.http_client import HttpClient
from tests.support.images import digest_of, make_artifact, make_image, make_index
from tests.support.ports import closed_port
from tests.support.upstreams import faults
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.messages import HEAD, Answer, Fault
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import JSON, PythonUpstream
from tests.support.upstreams.server import ANY, ScriptedUpstream

pytestmark = pytest.mark.server

BODY = bytes(range(256)) * 2000


@pytest.fixture
def upstream():
    with ScriptedUpstream({"/file": Answer(body=BODY, fields={"ETag": '"1"'})}) as running:
        yield running


@pytest.fixture
def client(upstream):
    return HttpClient(upstream.url)


def test_documents_have_ranges_and_conditions(upstream, client):
    whole = client.get("/file")
    assert (whole.status, whole.body) == (200, BODY)
    part = client.get("/file", Range="bytes=100-", If_Range='"1"')
    assert (part.status, part.body) == (206, BODY[100:])
    assert part.headers["content-range"] == f"bytes 100-{len(BODY) - 1}/{len(BODY)}"
    assert client.get("/file", Range="bytes=100-", If_Range='"0"').status == 200
    assert client.get("/file", Range=f"bytes={len(BODY)}-").status == 416
    assert client.get("/file", If_None_Match='"1"').status == 304
    head = client.head("/file")
    assert (head.headers["content-length"], head.body) == (str(len(BODY)), b"")
    assert client.get("/other").status == 404
    assert (upstream.count("/file"), upstream.sent("/file")) == (6, 3 * len(BODY) - 100)
    assert upstream.requests("/file")[1].fields["range"] == "bytes=100-"


@pytest.mark.parametrize(
    "fault",
    [
        faults.TRUNCATED,
        faults.RESET,
        faults.NO_ANSWER,
        faults.CHUNKED_WITHOUT_END,
        faults.truncated_by(10, announce=True),
        Fault(length=len(BODY) + 1),
    ],
)
def test_a_cut_answer_is_incomplete_and_the_next_one_regular(upstream, client, fault):
    upstream.misbehave("/file", fault)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        client.get("/file")
    assert client.get("/file").body == BODY


@pytest.mark.parametrize(
    ("step", "status", "body"),
    [
        (faults.failing(503, "7"), 503, faults.failing().body),
        (faults.HTML, 200, faults.HTML.body),
        (faults.redirect("/file", 307), 307, b""),
        (faults.not_modified, 304, b""),
        (faults.corrupted, 200, BODY[:-1] + b"\xfe"),
        (faults.truncated_by(10, announce=False), 200, BODY[:-10]),
        (faults.UNFRAMED, 200, BODY),
        (faults.DROPPED, 200, BODY),
        (Fault(chunked=True), 200, BODY),
        (Fault(rate=10_000_000), 200, BODY),
        (Fault(length=10), 200, BODY[:10]),
        (faults.with_etag('"2"'), 200, BODY),
    ],
)
def test_a_whole_answer_can_be_wrong(upstream, client, step, status, body):
    upstream.misbehave("/file", step)
    reply = client.get("/file")
    assert (reply.status, reply.body) == (status, body)


def test_gzip_can_come_unasked_or_as_a_bomb(upstream, client):
    upstream.misbehave("/file", faults.gzipped, faults.gzip_bomb(128 * faults.MIB))
    assert gzip.decompress(client.get("/file").body) == BODY
    bomb = client.get("/file")
    assert (bomb.headers["content-encoding"], len(bomb.body) < faults.MIB) == ("gzip", True)


def test_steps_repeat_and_apply_to_every_path(upstream, client):
    upstream.misbehave(ANY, faults.failing(500), faults.failing(502), repeat=True)
    assert [client.get(path).status for path in ("/file", "/other", "/file")] == [500, 502, 502]
    upstream.behave()
    assert client.get("/file").status == 200


@pytest.mark.parametrize("position", [HEAD, 100])
def test_a_paused_answer_continues_when_it_is_released(upstream, client, position):
    upstream.misbehave("/file", Fault(pause_at=position))
    replies = []
    reader = threading.Thread(target=lambda: replies.append(client.get("/file")))
    reader.start()
    upstream.wait_paused("/file")
    assert upstream.sent("/file") == max(position, 0)
    upstream.release("/file")
    reader.join()
    assert replies[0].body == BODY


def test_endless_answers_end_when_the_client_leaves(upstream, client):
    upstream.misbehave("/file", faults.ENDLESS_BODY, faults.ENDLESS_HEAD)
    for _ in range(2):
        with client.connect() as connection:
            connection.sendall(client.head_lines("GET", "/file"))
            received = 0
            while received < 2 * len(BODY):
                received += len(connection.recv(1 << 20))
    upstream.wait_for(lambda: [each.ended for each in upstream.exchanges] == ["left", "left"])


def test_connections_are_kept_until_the_server_drops_them(upstream):
    kept = http.client.HTTPConnection(upstream.host, upstream.port)

    def ask():
        kept.request("GET", "/file")
        return kept.getresponse().read()

    assert [ask(), ask()] == [BODY, BODY]
    assert upstream.connections == 1
    upstream.drop_idle()
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        ask()
    kept.close()


def test_a_stopped_server_refuses_connections_and_starts_again_on_its_port(upstream, client):
    upstream.stop()
    with pytest.raises(ConnectionRefusedError):
        client.get("/file")
    upstream.start()
    assert client.get("/file").status == 200
    with pytest.raises(ConnectionRefusedError):
        HttpClient(f"http://127.0.0.1:{closed_port()}").get("/")


def test_credentials_can_be_demanded(upstream, client):
    upstream.authorization = "Bearer secret"
    assert client.get("/file").status == 401
    assert client.get("/file", Authorization="Bearer secret").status == 200


def test_a_server_with_a_certificate_speaks_tls(tmp_path):
    certificate = write_certificate(tmp_path)
    with ScriptedUpstream({"/file": BODY}, certificate=certificate) as upstream:
        context = ssl.create_default_context(cafile=str(certificate[0]))
        connection = http.client.HTTPSConnection(upstream.host, upstream.port, context=context)
        connection.request("GET", "/file")
        assert connection.getresponse().read() == BODY
        connection.close()


def test_npm_upstream_has_packuments_and_tarballs_at_another_server():
    with ScriptedUpstream() as files, NpmUpstream(files=files) as npm:
        npm.add("@scope/a", "1.0.0", dependencies={"b": "^1"})
        tarball = npm.add("@scope/a", "2.0.0")
        client = HttpClient(npm.url)
        full = client.get("/@scope%2fa")
        short = client.get("/@scope/a", Accept="application/vnd.npm.install-v1+json", Accept_Encoding="gzip")
        assert full.json["dist-tags"] == {"latest": "2.0.0"}
        assert full.json["versions"]["1.0.0"]["dependencies"] == {"b": "^1"}
        dist = json.loads(gzip.decompress(short.body))["versions"]["2.0.0"]["dist"]
        assert dist["tarball"] == npm.tarball_url("@scope/a", "2.0.0")
        assert HttpClient(files.url).get(npm.tarball_path("@scope/a", "2.0.0")).body == tarball
        assert client.get("/unknown").status == 404
        npm.change("@scope/a", description="changed")
        assert client.get("/@scope%2fa", If_None_Match=full.headers["etag"]).json["description"] == "changed"


def test_python_upstream_has_pages_files_and_metadata():
    with PythonUpstream() as index:
        name, data = index.add("Some.Project", "1.0", requires=["other>=1"], requires_python=">=3.8", yanked="broken")
        client = HttpClient(index.url)
        page = client.get("/simple/some-project/", Accept=JSON)
        (file,) = page.json["files"]
        assert (file["filename"], file["yanked"], file["requires-python"]) == (name, "broken", ">=3.8")
        assert client.get(index.file_path(name)).body == data
        metadata = client.get(f"{index.file_path(name)}.metadata").body
        assert digest_of(metadata) == f"sha256:{file['core-metadata']['sha256']}"
        assert b"Requires-Dist: other>=1" in metadata
        index.json = False
        html = client.get("/simple/some-project/", Accept=f"{JSON}, text/html;q=0.1").text
        assert f'href="{file["url"]}#sha256={file["hashes"]["sha256"]}" data-requires-python="&gt;=3.8"' in html
        assert client.get("/simple/unknown/").status == 404


def test_container_upstream_gives_tokens_and_redirects_to_blobs():
    with ScriptedUpstream() as tokens, ScriptedUpstream() as blobs:  # noqa: SIM117
        with ContainerUpstream(challenge="bearer", tokens=tokens, blobs=blobs, quota=1) as registry:
            image = make_image()
            index = make_index([image])
            registry.push("library/app", index, "latest", children=(image,))
            registry.push("library/app", make_artifact(image, "text/note"))
            client = HttpClient(registry.url)
            path = registry.manifest_path("library/app", "latest")
            refused = client.get(path)
            assert refused.headers["www-authenticate"] == (
                f'Bearer realm="{tokens.url}/token",service="upstream",scope="repository:library/app:pull"'
            )
            given = HttpClient(tokens.url).get("/token?service=upstream&scope=repository:library/app:pull")
            token = f"Bearer {given.json['token']}"
            found = client.get(path, Authorization=token)
            assert (found.body, found.headers["docker-content-digest"]) == (index.manifest, index.digest)
            assert client.get(path, Authorization=token).status == 429
            assert client.head(path, Authorization=token).status == 200
            assert client.get(registry.manifest_path("library/other", "latest"), Authorization=token).status == 401
            blob = client.get(registry.blob_path("library/app", digest_of(image.blobs[1])), Authorization=token)
            assert blob.status == 307
            assert HttpClient(blobs.url).get(f"/{digest_of(image.blobs[1])}").body == image.blobs[1]
            assert client.get("/v2/library/app/tags/list", Authorization=token).json["tags"] == ["latest"]
            referrers = client.get(f"/v2/library/app/referrers/{image.digest}", Authorization=token)
            assert [each["artifactType"] for each in referrers.json["manifests"]] == ["text/note"]

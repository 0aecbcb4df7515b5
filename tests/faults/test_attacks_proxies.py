"""Attempts to read through proxy and virtual repositories what is not the caller's, and to serve what is not ours."""

import hashlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN, BOB, add_bob, push_image
from tests.support.data_folder import wait_for
from tests.support.format_cases import CASES
from tests.support.http_client import HttpClient
from tests.support.images import make_image
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.proxied import KINDS, PRIVATE
from tests.support.python_packages import make_wheel
from tests.support.server_process import running
from tests.support.upstreams.messages import Fault

pytestmark = pytest.mark.faults

NUMBERS = itertools.count()
IMAGE = make_image("ours")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server, with a hosted repository of each format called ``own-<kind>``."""
    own = "".join(hosted(proxied.format, f"own-{kind}") for kind, (_, proxied) in KINDS.items())
    with running(tmp_path_factory.mktemp("proxies"), PRIVATE + own) as process:
        add_bob(HttpClient(process.url, ADMIN))
        yield process


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def make(server, kind):
    """Make proxy repositories of one format, with upstreams of their own."""
    upstreams = []

    def make(**settings):
        upstream_class, proxied_class = KINDS[kind]
        upstreams.append(upstream_class().start())
        return proxied_class(upstreams[-1], server.url, f"{kind}-{next(NUMBERS)}", **settings)

    yield make
    for each in upstreams:
        each.stop()


def behind_virtual(proxied, kind, **more):
    """The proxy as the second member of a new virtual repository, behind the hosted one."""
    name = f"virtual-{next(NUMBERS)}"
    body = {
        "name": name,
        "storage": "main",
        "format": proxied.format,
        "visibility": "public",
        "config": {"type": "Virtual", "members": [f"main/own-{kind}", f"main/{proxied.name}"], **more},
    }
    made = proxied.client.post_json("/api/repository", body)
    assert made.status == 201, made
    other = proxied.at(proxied.client.url)
    for each in ("document", "file"):
        setattr(other, each, getattr(proxied, each).replace(f"/main/{proxied.name}/", f"/main/{name}/"))
    return other


def publish_ours(client, kind):
    """Publish a package of the same name to the hosted repository; what its document contains, and its file."""
    if kind == "npm":
        data = make_tarball("demo", "1.0.0")
        published = make_publish("demo", "1.0.0", tarball=data)
        assert client.put("/repositories/main/own-npm/demo", published).status == 201
        return hashlib.sha1(data).hexdigest().encode(), data
    if kind == "python":
        filename, data = make_wheel("demo", "1.0", pad=10)
        assert client.put(f"/repositories/main/own-python/packages/demo/1.0/{filename}", data).status == 201
        return hashlib.sha256(data).hexdigest().encode(), data
    if kind == "maven":
        data = b"our jar"
        for version in ("1.0", "1.0-ours"):
            path = f"/repositories/main/own-maven/com/example/demo/{version}/demo-{version}.jar"
            assert client.put(path, data).status == 201
        return b"1.0-ours", data
    if kind in CASES:  # cargo, helm, go
        case = CASES[kind]
        for version in ("1.0.0", "1.9.0"):
            case.put_by(client.below(f"repositories/main/own-{kind}"), "demo", version)
        return case.listing("demo", "1.9.0"), case.sent("demo", "1.0.0")[1]
    push_image(client, "main/own-container/team/demo", IMAGE, "v1")
    return IMAGE.manifest, None


def test_what_a_private_proxy_keeps_is_served_to_nobody_else(make, server):
    proxied = make()
    listed = proxied.client.get("/api/repository").json["items"]
    (found,) = [each for each in listed if each["name"] == proxied.name]
    path = f"/api/repository/{found['id']}"
    assert proxied.client.ask("PATCH", path, b'{"visibility": "private"}').status == 200
    for _ in range(2):
        assert proxied.is_document(proxied.get_document())
        assert proxied.is_file(proxied.get_file())
    before = proxied.upstream.count()
    for client in (HttpClient(server.url), HttpClient(server.url, BOB)):
        for each in (proxied.document, proxied.file, proxied.file + "x"):
            for method, fields in (("GET", {}), ("HEAD", {}), ("GET", {"Range": "bytes=0-9"})):
                reply = client.ask(method, each, headers=fields)
                assert reply.status in (401, 403, 404), (method, each, reply)
    assert proxied.upstream.count() == before, "nobody without permissions makes the server ask"


def test_a_name_that_is_published_while_the_upstream_answers_is_ours(make, kind):
    proxied = make()
    everything = behind_virtual(proxied, kind)
    upstream = proxied.upstream
    for path in (proxied.upstream_document, proxied.upstream_file):
        upstream.misbehave(path, Fault(pause_at=10))
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(everything.get_document)
        upstream.wait_paused()
        ours, data = publish_ours(proxied.client, kind)
        upstream.behave()
        early.result()
    upstream.forget()
    for _ in range(3):
        assert ours in everything.get_document().body
        reply = everything.get_file()
        assert (reply.status, reply.body) == (200, data) if data else reply.status == 404
    assert upstream.count() == 0


def test_a_token_for_other_packages_makes_the_server_ask_for_nothing(make, server):
    proxied = make()
    scope = {"repository": f"main/{proxied.name}", "actions": ["read"]}
    body = {"name": proxied.name, "packages": ["allowed*"], "repositories": [scope]}
    private = proxied.client.post_json(f"/api/repository/main%2F{proxied.name}", {"visibility": "private"}, "PATCH")
    assert private.status == 200  # what everybody may read, such a token may, too
    token = proxied.client.post_json("/api/user/token", body).json["token"]
    limited = HttpClient(server.url, ("admin", token))

    def refused():
        asked = itertools.product(("GET", "HEAD"), (proxied.document, proxied.file))
        return all(limited.ask(method, path).status in (401, 403, 404) for method, path in asked)

    assert refused()
    assert proxied.upstream.count() == 0
    assert proxied.is_document(proxied.get_document())
    assert proxied.is_file(proxied.get_file())
    assert refused()


def test_made_up_names_leave_nothing_open(make, server):
    proxied = make()
    assert proxied.is_file(proxied.get_file())
    before = open_files(server)
    paths = [
        path.replace("demo", f"made-up-{number}", 1)
        for path in ((proxied.file,) if proxied.of_many else (proxied.document, proxied.file))
        for number in range(100)
    ]
    with ThreadPoolExecutor(50) as pool:
        statuses = {reply.status for reply in pool.map(proxied.client.get, paths)}
    assert statuses == {404}
    # Threads that many requests start keep a connection to the database each; a leak would be one of each name.
    wait_for(lambda: open_files(server) < before + 50, server)


def open_files(server):
    """The number of descriptors that are no connections."""
    folder = Path(f"/proc/{server.pid}/fd")
    found = []
    for each in folder.iterdir():
        with suppress(FileNotFoundError):
            found.append(str(each.readlink()))
    return sum(not name.startswith("socket:") for name in found)

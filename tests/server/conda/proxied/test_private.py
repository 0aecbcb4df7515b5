"""A private channel of another server behind a proxy, and both by addresses with tokens."""

from __future__ import annotations

import pytest

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.model import TokenKind
from tests.support.conda_packages import make_conda
from tests.support.configurations import PRIVATE, hosted, proxy, tokens, virtual
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import running

pytestmark = pytest.mark.server

TOKEN = make_token(TokenKind.CI)
HYPHENS = TOKEN.replace("_", "-")
SCOPE = tokens(USER, {"reader": TOKEN}, {"reader": ("main/*", ["read"], [])})
DOCUMENTS = (
    "noarch/repodata.json",
    "noarch/repodata.json.zst",
    "noarch/current_repodata.json",
    "noarch/run_exports.json",
    "noarch/repodata_shards.msgpack.zst",
    "linux-64/repodata.json",
    "channeldata.json",
    "notices.json",
)


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """A server with a private channel, which has the package ``far``."""
    with running(tmp_path_factory.mktemp("origin"), hosted("conda", ch=PRIVATE) + SCOPE) as server:
        channel = HttpClient(f"{server.url}/repositories/main/ch", (USER, PASSWORD))
        assert channel.put("/noarch/far-1.0-py_0.conda", make_conda("far")).status == 201
        yield server


@pytest.fixture(scope="module")
def behind(origin, tmp_path_factory):
    """A server with a private proxy of it, and a private virtual channel of that and of an own one with ``near``."""
    configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(
        (
            SCOPE,
            hosted("conda", own=PRIVATE),
            proxy("conda", "mirror", f"{origin.url}/t/{HYPHENS}/repositories/main/ch", lines=PRIVATE, cache_ttl="0"),
            virtual("conda", "all", "main/own", "main/mirror").replace('"all"', f'"all"\n{PRIVATE}'),
        )
    )
    with running(tmp_path_factory.mktemp("behind"), configuration) as server:
        own = HttpClient(f"{server.url}/repositories/main/own", (USER, PASSWORD))
        assert own.put("/noarch/near-1.0-py_0.conda", make_conda("near")).status == 201
        yield server


@pytest.mark.parametrize(
    "address",
    [f"/t/{HYPHENS}/repositories/main/{{}}", f"/repositories/main/{{}}/t/{TOKEN}"],
    ids=["host", "channel"],
)
@pytest.mark.parametrize(("repository", "expected"), [("mirror", {"far"}), ("all", {"far", "near"})])
def test_private_proxies_and_virtual_channels_are_read_by_token_address(origin, behind, address, repository, expected):
    channel = HttpClient(behind.url + address.format(repository))
    strangers = HttpClient(f"{behind.url}/repositories/main/{repository}")
    for path in (*DOCUMENTS, "noarch/far-1.0-py_0.conda"):
        found = channel.get(f"/{path}")
        assert (path, found.status) == (path, 200)
        assert "private" in found.headers["cache-control"]
        assert (path, strangers.get(f"/{path}").status) == (path, 401)
    found = channel.get("/noarch/repodata.json")
    assert {each["name"] for each in found.json["packages.conda"].values()} == expected
    assert channel.get("/noarch/repodata.json", If_None_Match=found.headers["etag"]).status == 304
    for server in (origin, behind):
        assert (TOKEN[7:] in server.output, HYPHENS[7:] in server.output) == (False, False)


def test_readers_see_no_token_of_an_upstreams_address(behind):
    admin = HttpClient(f"{behind.url}/api", (USER, PASSWORD))
    name, password = "conda-reader", "correct horse battery"
    created = admin.post_json("/users", {"username": name, "password": password}).json
    rights = {"default_repository_actions": ["read"]}
    assert admin.post_json(f"/users/{created['id']}/permissions", rights, "PUT").status == 200
    api = admin.as_user(name, password)
    for repository in ("mirror", "all"):
        below = f"/repository/main%2F{repository}"
        for path in (below, f"{below}/packages", f"{below}/setup"):
            found = api.get(path)
            assert (path, found.status, HYPHENS[7:] in found.text) == (path, 200, False)
        explained = api.get(f"/explain?repository=main%2F{repository}&package=far")
        assert (explained.json["outcome"], HYPHENS[7:] in explained.text) == ("served", False)
    titles = {each["title"] for each in api.get("/repository/main%2Fmirror/setup").json}
    assert not any(each.startswith("Publish") for each in titles)


def test_anaconda_client_is_told_that_a_proxy_takes_no_uploads(behind):
    mirror = HttpClient(f"{behind.url}/repositories/main/mirror", (USER, PASSWORD))
    for reply in (
        mirror.get("/user"),
        mirror.get("/package/any/far"),
        mirror.post_json("/stage/any/far/2.0/noarch/far-2.0-py_0.conda", {}),
        mirror.delete("/package/any/far"),
    ):
        assert (reply.status, "is a proxy" in reply.json["error"]) == (405, True)

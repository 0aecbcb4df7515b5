"""Packuments, versions, tags and tarballs as clients read them."""

import base64
import gzip
import hashlib
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.timeouts import polled

pytestmark = pytest.mark.server

SHORT = "application/vnd.npm.install-v1+json"
INSTALL = f"{SHORT}; q=1.0, application/json; q=0.8, */*"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (INSTALL, SHORT),
        (SHORT, SHORT),
        ("application/json", "application/json"),
        ("application/json; q=1.0, */*", "application/json"),
        ("*/*", "application/json"),
        (None, "application/json"),
        (f"{SHORT}; q=0.5, application/json", "application/json"),
    ],
)
def test_the_form_follows_the_accept_header(npm, publish, accept, expected):
    name = f"form-{hashlib.sha1(str(accept).encode()).hexdigest()[:8]}"
    publish(name)
    for _ in range(2):  # the second response comes from the cache
        reply = npm.ask("GET", f"/{name}", headers={} if accept is None else {"Accept": accept})
        assert (reply.status, reply.headers["content-type"]) == (200, expected)
        assert reply.headers["vary"] == "Accept, Accept-Encoding"
        assert "time" in reply.json
        assert ("_rev" in reply.json) == (expected != SHORT)


def test_each_variant_has_its_own_validator(npm, publish):
    publish("validators", dependencies={f"dependency-{index}": "1" for index in range(100)})
    tags = set()
    for accept in (INSTALL, "application/json"):
        for coding in ("identity", "gzip"):
            reply = npm.get("/validators", Accept=accept, Accept_Encoding=coding)
            assert reply.headers.get("content-encoding", "identity") == coding
            tags.add(reply.headers["etag"])
            again = npm.get("/validators", Accept=accept, Accept_Encoding=coding, If_None_Match=reply.headers["etag"])
            assert (again.status, again.body) == (304, b"")
            assert again.headers["vary"] == "Accept, Accept-Encoding"
    assert len(tags) == 4
    other = npm.get("/validators", Accept=INSTALL).headers["etag"]
    assert npm.get("/validators", Accept="application/json", If_None_Match=other).status == 200


def test_the_compressed_form_is_the_same_document(npm, publish):
    publish("packed", description="y" * 3000)
    plain = npm.get("/packed")
    packed = npm.get("/packed", Accept_Encoding="zstd, gzip, br")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


def test_a_document_to_be_written_back_is_full_and_never_answered_with_304(npm, publish):
    publish("written")
    known = npm.get("/written").headers["etag"]
    reply = npm.get("/written?write=true", Accept=INSTALL, If_None_Match=known)
    assert reply.status == 200
    assert reply.json["_rev"]
    assert reply.headers["cache-control"] == "no-store"


def told_date(reply):
    """Return the time in the Last-Modified field, or None."""
    told = reply.headers.get("last-modified")
    return None if told is None else parsedate_to_datetime(told)


@pytest.mark.parametrize("accept", [INSTALL, "*/*"])
def test_if_modified_since_gives_304(npm, publish, accept):
    name = f"dated-{len(accept)}"
    publish(name)
    for _ in range(2):  # the second responses come from the cache
        reply = npm.get(f"/{name}", Accept=accept)
        assert told_date(reply) == datetime.fromisoformat(reply.json["time"]["modified"]).replace(microsecond=0)
        date = reply.headers["last-modified"]
        again = npm.get(f"/{name}", Accept=accept, If_Modified_Since=date)
        assert (again.status, again.body) == (304, b"")
        assert (again.headers["last-modified"], again.headers["etag"]) == (date, reply.headers["etag"])
    before = format_datetime(told_date(reply) - timedelta(seconds=1), usegmt=True)
    assert npm.get(f"/{name}", Accept=accept, If_Modified_Since=before).status == 200
    assert npm.get(f"/{name}", Accept=accept, If_Modified_Since=date, If_None_Match='"other"').status == 200
    assert npm.get(f"/{name}", Accept=accept, If_Modified_Since="yesterday").status == 200
    writing = npm.get(f"/{name}?write=true", Accept=accept, If_Modified_Since=date)
    assert (writing.status, told_date(writing)) == (200, None)


def test_dates_alone_never_hide_a_change(npm, publish):
    """Several changes lie within one second, and in a second that has not ended."""
    seen, last = set(), 5
    publish("hurried", "1.0.0")
    for patch in range(1, last + 1):
        reply = npm.get("/hurried")
        known = reply.headers.get("last-modified", reply.headers["date"])
        publish("hurried", f"1.0.{patch}")
        after = npm.get("/hurried", If_Modified_Since=known)
        assert (after.status, f"1.0.{patch}" in after.json["versions"]) == (200, True)
        assert told_date(after) is None or told_date(after) <= parsedate_to_datetime(after.headers["date"])
        if told_date(after) is not None:
            assert told_date(after) not in seen
            if patch < last:  # where a second passes before the answer, this is the settled date already
                seen.add(told_date(after))
    settled = polled(lambda: reply if told_date(reply := npm.get("/hurried")) is not None else None)
    assert told_date(settled) not in seen
    assert npm.get("/hurried", If_Modified_Since=settled.headers["last-modified"]).status == 304


def test_a_publish_is_seen_at_once(npm, publish):
    publish("seen", "1.0.0")
    for accept in (INSTALL, "*/*"):
        npm.get("/seen", Accept=accept)
    publish("seen", "1.1.0")
    for accept in (INSTALL, "*/*"):
        assert sorted(npm.get("/seen", Accept=accept).json["versions"]) == ["1.0.0", "1.1.0"]
    assert npm.get("/-/package/seen/dist-tags").json == {"latest": "1.1.0"}
    assert npm.get("/seen/latest").json["version"] == "1.1.0"


@pytest.mark.parametrize("path", ["/@read/x", "/@read%2fx", "/@read%2Fx", "/%40read%2fx", "/@read%2fx/"])
def test_every_encoding_of_a_scope_is_accepted(npm, publish, path):
    if npm.get("/@read/x").status == 404:
        publish("@read/x")
    assert npm.get(path).json["name"] == "@read/x"


def test_tarballs_are_served_under_every_path(npm, publish):
    publish("@tar/base-64", "1.0.0-beta.1", tag="beta")
    data = make_tarball("@tar/base-64", "1.0.0-beta.1")
    for path in (
        "/@tar/base-64/-/base-64-1.0.0-beta.1.tgz",
        "/@tar%2fbase-64/-/base-64-1.0.0-beta.1.tgz",
        "/@tar/base-64/-/@tar/base-64-1.0.0-beta.1.tgz",
        "/@tar/base-64/-/1.0.0-beta.1/base-64-1.0.0-beta.1.tgz",
        "/package/@tar/base-64/1.0.0-beta.1/base-64-1.0.0-beta.1.tgz",
        "/package/@tar%2fbase-64/1.0.0-beta.1/base-64-1.0.0-beta.1.tgz",
    ):
        reply = npm.get(path)
        assert (reply.status, reply.body) == (200, data), path
        assert reply.headers["content-type"] == "application/octet-stream"
        assert "content-encoding" not in reply.headers
        assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"
    part = npm.get("/@tar/base-64/-/base-64-1.0.0-beta.1.tgz", Range="bytes=2-5")
    assert (part.status, part.body) == (206, data[2:6])
    head = npm.head("/@tar/base-64/-/base-64-1.0.0-beta.1.tgz")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(data)))


@pytest.mark.parametrize(
    "path",
    [
        "/missing",
        "/@missing/x",
        "/missing/-/missing-1.0.0.tgz",
        "/here/-/here-2.0.0.tgz",
        "/here/-/other-1.0.0.tgz",
        "/here/-/2.0.0/here-1.0.0.tgz",
        "/here/-/here-1.0.0.tar.gz",
        "/..%2f..%2fetc%2fpasswd",
        "/here/-/..%2f..%2fx.tgz",
        "/%00",
        "/here%0A",
        "/here//1.0.0",
        "//here",
        "/-/nothing",
        "/-/package/missing/dist-tags",
        "/-/npm/v1/attestations/here@1.0.0",
    ],
)
def test_missing_things_are_answered_in_json(npm, publish, path):
    if npm.get("/here").status == 404:
        publish("here")
    for method in ("GET", "HEAD"):
        reply = npm.ask(method, path)
        assert (reply.status, reply.headers["content-type"]) == (404, "application/json")
    assert npm.get(path).json["error"]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/main/npm/%ff", {}, 400),
        ("/main/npm/x", {"X": "y" * 40_000}, 431),
        ("/main/npm/x", {"Host": "a b"}, 400),
        ("/main/nothing/x", {}, 401),
        ("/main/nothing/a%0Ab", {}, 401),
        ("//npm/x", {}, 404),
        ("", {}, 404),
    ],
)
def test_refusals_before_routing_are_json(format_server, path, headers, status):
    reply = HttpClient(f"{format_server.url}/repositories").ask("GET", path, headers=headers)
    sentence = reply.json["error"]
    assert (reply.status, reply.headers["content-type"]) == (status, "application/json")
    assert (reply.reason, reply.json["errors"]) == (sentence, [{"code": "UNKNOWN", "message": sentence}])


def test_a_missing_package_is_answered_as_by_the_public_registry(npm):
    assert npm.get("/nobody-published-this").json["error"] == "not_found"
    assert npm.get("/nobody-published-this").json["reason"] == "document not found"


def test_one_version_is_found_by_number_and_by_tag(npm, publish):
    publish("one", "1.0.0")
    publish("one", "2.0.0-rc.1", tag="next")
    for selector, version in (("1.0.0", "1.0.0"), ("v1.0.0", "1.0.0"), ("=1.0.0", "1.0.0"), ("latest", "1.0.0")):
        assert npm.get(f"/one/{selector}").json["version"] == version
    assert npm.get("/one/next").json["dist"]["tarball"] == f"{npm.url}/one/-/one-2.0.0-rc.1.tgz"
    reply = npm.get("/one/9.9.9")
    assert (reply.status, reply.json) == (404, {"error": "version not found: 9.9.9"})
    assert npm.get("/one/~1.0").status == 404


def test_a_package_may_be_called_package(repository):
    where = repository("reusable")
    for name in ("package", "inner"):
        assert where.put(f"/{name}", make_publish(name, "1.0.0")).status == 201
    assert where.get("/package").json["name"] == "package"
    assert where.get("/package/1.0.0").json["name"] == "package"
    assert where.get("/package/-/package-1.0.0.tgz").body == make_tarball("package", "1.0.0")
    assert where.get("/package/inner").json["name"] == "inner"
    assert where.get("/package/inner/1.0.0").json["version"] == "1.0.0"
    assert where.get("/package/package").json["name"] == "package"
    assert where.get("/package/package/1.0.0/package-1.0.0.tgz").status == 200


def test_addresses_in_documents_are_those_that_the_client_used(npm, publish):
    publish("@addressed/x")
    path = "/repositories/main/npm/@addressed/x/-/x-1.0.0.tgz"

    def tarball(**headers):
        for _ in range(2):
            found = npm.get("/@addressed%2fx", **headers).json["versions"]["1.0.0"]["dist"]["tarball"]
        return found

    assert tarball() == f"http://{npm.parts.netloc}{path}"
    assert tarball(Host="packages.example.org") == f"http://packages.example.org{path}"
    assert (
        tarball(X_Forwarded_Proto="https", X_Forwarded_Host="p.example.org", X_Forwarded_Prefix="/pkg")
        == f"https://p.example.org/pkg{path}"
    )
    assert tarball() == f"http://{npm.parts.netloc}{path}"


def test_the_repository_describes_itself(npm, publish):
    publish("counted")
    for path in ("", "/"):
        info = npm.get(path).json
        assert info["db_name"] == "npm"
        assert info["doc_count"] >= 1
    assert npm.get("/-/ping").json == {}


def test_a_private_repository_hides_its_packages(repository, publish, as_token):
    private = repository("private")
    publish("secret", where=private)
    for path in ("/secret", "/secret/1.0.0", "/secret/-/secret-1.0.0.tgz", "/nothing", "/-/v1/search?text=secret"):
        reply = private.as_user().get(path)
        assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Basic realm="pkgrepo"'), path
    for path in ("/secret", "/secret/-/secret-1.0.0.tgz", "/-/package/secret/dist-tags"):
        assert as_token("elsewhere", "private").get(path).status == 404
        assert private.as_user("bob", "bob keeps bees at home").get(path).status == 404
        assert as_token("reader", "private").get(path).status == 200
    reply = private.get("/secret/-/secret-1.0.0.tgz")
    assert reply.headers["cache-control"].startswith("private")
    assert private.get("/secret").headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize("method", ["PATCH", "OPTIONS"])
def test_other_methods_are_refused_in_json(npm, method):
    reply = npm.ask(method, "/x")
    assert (reply.status, reply.headers["content-type"]) == (405, "application/json")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/x", "GET, HEAD, PUT, DELETE"),
        ("DELETE", "/x", "GET, HEAD, PUT, DELETE"),  # without a revision
        ("PUT", "/x/-/x-1.0.0.tgz", "GET, HEAD, DELETE"),
        ("DELETE", "/", "GET, HEAD, PUT"),
    ],
)
def test_a_405_lists_the_allowed_methods(npm, method, path, allowed):
    reply = npm.ask(method, path)
    assert (reply.status, reply.headers["allow"]) == (405, allowed)


def test_signatures_verify_with_the_published_key(npm, publish):
    publish("@signed/x", "1.0.0")
    (key,) = npm.get("/-/npm/v1/keys").json["keys"]
    assert (key["keytype"], key["scheme"], key["expires"]) == ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256", None)
    public = serialization.load_der_public_key(base64.b64decode(key["key"]))
    for form in ("application/vnd.npm.install-v1+json", "application/json"):
        dist = npm.get("/@signed%2fx", Accept=form).json["versions"]["1.0.0"]["dist"]
        (signature,) = dist["signatures"]
        assert signature["keyid"] == key["keyid"]
        message = f"@signed/x@1.0.0:{dist['integrity']}".encode()
        public.verify(base64.b64decode(signature["sig"]), message, ec.ECDSA(hashes.SHA256()))

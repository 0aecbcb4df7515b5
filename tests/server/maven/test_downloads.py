"""Ranges, conditional requests, HEAD and caching of downloads."""

from __future__ import annotations

import pytest

from tests.support.maven_files import JAR, sums

pytestmark = pytest.mark.server

DATED = ("date", "x-request-id")


@pytest.fixture(params=["small", "large"])
def stored(mvn, request):
    """The path and the bytes of a file that is sent from memory, or from the disk."""
    data = JAR if request.param == "small" else bytes(range(256)) * 1000
    path = f"/com/example/ranged/{request.param}/ranged-{request.param}.jar"
    assert mvn.put(path, data).status in (200, 201)
    return path, data


@pytest.mark.parametrize(
    ("wanted", "start", "end"),
    [("bytes=100-199", 100, 200), ("bytes=-10", -10, None), ("bytes=1000-", 1000, None), ("bytes=0-0", 0, 1)],
)
def test_single_ranges(mvn, stored, wanted, start, end):
    path, data = stored
    for _ in range(2):
        got = mvn.get(path, Range=wanted)
        assert (got.status, got.body) == (206, data[start:end])
        assert got.headers["content-range"].endswith(f"/{len(data)}")
    assert mvn.get(path, Range=f"bytes={len(data)}-").status == 416
    several = mvn.get(path, Range="bytes=0-1,5-6")
    assert (several.status, several.body) == (200, data)


def test_conditions(mvn, stored):
    path, data = stored
    first = mvn.get(path)
    etag, date = first.headers["etag"], first.headers["last-modified"]
    old = "Mon, 01 Jan 2001 00:00:00 GMT"
    for _ in range(2):
        for value in (etag, f"W/{etag}", f'"x", {etag}', "*"):
            assert mvn.get(path, If_None_Match=value).status == 304
        assert mvn.get(path, If_None_Match='"x"').status == 200
        assert mvn.get(path, If_Modified_Since=date).status == 304
        assert mvn.get(path, If_Modified_Since=old).status == 200
        assert mvn.get(path, If_Unmodified_Since=date).status == 200
        assert mvn.get(path, If_Match=etag).status == 200
        for fields in ({"If_Unmodified_Since": old}, {"If_Match": '"x"'}, {"If_Match": f"W/{etag}"}):
            refused = mvn.get(path, **fields)
            assert (refused.status, refused.body) == (412, b"")
        assert mvn.get(path, Range="bytes=5-", If_Unmodified_Since=old).status == 412
        resumed = mvn.get(path, Range="bytes=5-", If_Unmodified_Since=date)
        assert (resumed.status, resumed.body) == (206, data[5:])
        assert mvn.get(path, Range="bytes=5-", If_Range=etag).status == 206
        assert mvn.get(path, Range="bytes=5-", If_Range='"x"').status == 200


def test_head_has_exactly_the_fields_of_get(mvn, stored):
    path, _ = stored
    for each in (path, f"{path}.sha1"):
        head, got = mvn.head(each), mvn.get(each)
        assert (head.status, head.body) == (200, b"")
        both = [{k: v for k, v in reply.headers.items() if k not in DATED} for reply in (head, got)]
        assert both[0] == both[1]


def test_files_are_never_compressed(mvn, stored):
    path, data = stored
    got = mvn.get(path, Accept_Encoding="gzip, deflate, zstd")
    assert (got.body, "content-encoding" in got.headers) == (data, False)


def test_no_cache_of_a_client_changes_nothing(mvn, stored):
    path, data = stored
    got = mvn.get(path, Cache_Control="no-cache, no-store", Pragma="no-cache")
    assert (got.status, got.body) == (200, data)


PATHS = {
    "release": "/com/example/lasting/1.0/lasting-1.0.jar",
    "build": "/com/example/lasting/1.1-SNAPSHOT/lasting-1.1-20240102.030405-6.jar",
    "literal": "/com/example/lasting/1.1-SNAPSHOT/lasting-1.1-SNAPSHOT.jar",
    "plain": "/lasting.txt",
}
LASTING = "public, max-age=31536000, immutable"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fixed", {"release": LASTING, "build": LASTING, "literal": "no-cache", "plain": "no-cache"}),
        ("mvn", dict.fromkeys(PATHS, "no-cache")),
        ("private", dict.fromkeys(PATHS, "private, no-cache")),
    ],
)
def test_only_what_cannot_change_may_be_cached_for_long(repository, name, expected):
    where = repository(name)
    for kind, path in PATHS.items():
        assert where.put(path, JAR).status == 201
        for each in (path, f"{path}.sha1"):
            assert (kind, where.get(each).headers["cache-control"]) == (kind, expected[kind])


def test_what_does_not_exist_is_a_plain_404(mvn):
    for path in (
        "/com/example/absent/1.0/absent-1.0.jar",
        "/com/example/absent/1.0/absent-1.0.jar.sha1",
        "/com/example/absent/1.0/absent-1.0.jar.asc",
        "/absent.txt",
        "/.meta/prefixes.txt",
    ):
        got = mvn.as_user().get(path)
        assert (path, got.status, got.reason) == (path, 404, "Not Found")


def test_a_signature_has_checksums_of_its_own(mvn):
    path = "/com/example/signed/1.0/signed-1.0.jar"
    assert mvn.put(path, JAR).status == 201
    assert mvn.put(f"{path}.asc", b"-----BEGIN PGP SIGNATURE-----").status == 201
    assert mvn.get(f"{path}.asc.sha1").text == sums(b"-----BEGIN PGP SIGNATURE-----")["sha1"]


@pytest.mark.parametrize("method", ["POST", "PATCH", "OPTIONS", "MKCOL", "PROPFIND"])
def test_other_methods_are_not_allowed(mvn, method):
    reply = mvn.ask(method, "/com/example/x/1.0/x-1.0.jar", b"")
    assert reply.status == 405
    assert {"GET", "HEAD", "PUT", "DELETE"} <= set(reply.headers["allow"].split(", "))

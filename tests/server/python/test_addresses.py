"""Invalid paths and methods."""

import pytest

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    "path",
    [
        "/packages/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/packages/..%2f..%2f..%2fetc%2fpasswd",
        "/packages/../../../../etc/passwd",
        "/packages/a/1.0/%00.whl",
        "/packages/a%00b/1.0/x-1.0-py3-none-any.whl",
        "/simple/%00/",
        "/simple/%2e%2e/",
        "/simple/%2F/",
        "/simple/a%2Fb/",
        "/simple/a\\b/",
        "/simple/" + "a" * 5000 + "/",
        "/packages/" + "b" * 300 + "-1.0-py3-none-any.whl",
        "/packages/x/" + "1" * 5000 + "/x-1.0.tar.gz",
        "/pypi/x/" + "9." * 2000 + "/json",
        "/packages/x/1.0/CON",
        "/simple/" + "%20" * 10 + "/",
        "/simple/%E2%98%83/",
        "/packages/x/1.0/x%0d%0aSet-Cookie:a.whl",
        "/simple/%0d%0aLocation:%20evil/",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_hostile_addresses_are_not_found(py, path, method):
    reply = py.ask(method, path)
    assert reply.status == 404
    assert "set-cookie" not in reply.headers
    assert "root:" not in reply.body.decode("latin-1")


@pytest.mark.parametrize("path", ["/simple/%FF/", "/packages/%C0%AE%C0%AE/1.0/x", "/pypi/%80/json"])
def test_addresses_that_are_not_utf_8_are_refused(py, path):
    assert py.get(path).status == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", "/simple/"),
        ("DELETE", "/simple/foo/"),
        ("PUT", "/packages/foo"),
        ("PATCH", "/packages/foo/1.0/foo-1.0.tar.gz"),
        ("PUT", "/"),
        ("PUT", "/legacy/"),
        ("DELETE", "/"),
    ],
)
def test_other_methods_are_refused_with_those_that_are_allowed(py, method, path):
    reply = py.ask(method, path, b"")
    assert reply.status == 405
    allowed = {each.strip() for each in reply.headers["allow"].split(",")}
    assert method not in allowed
    assert {"GET", "HEAD"} <= allowed or "POST" in allowed

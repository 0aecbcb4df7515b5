"""Downloads from a Python repository: files, their metadata and signatures, complete and as ranges."""

import hashlib

import pytest

from tests.support.python_packages import make_metadata, make_sdist

pytestmark = pytest.mark.server

JSON = "application/vnd.pypi.simple.v1+json"


@pytest.mark.parametrize("pad", [0, 300_000])  # one is sent from memory, one by sendfile
def test_a_file_is_the_same_on_every_address(py, publish, pad):
    project = f"everywhere-{pad}"
    filename, data = publish(project, "1.0", pad=pad)
    for path in (
        f"/packages/{project}/1.0/{filename}",
        f"/{project}/1.0/{filename}",
        f"/packages/{filename}",
        f"/simple/{project}/{filename}",
        f"/packages/{project.upper()}/1.0.0/{filename}",
        f"/packages/{project}/v1/{filename}",
    ):
        reply = py.get(path)
        assert (path, reply.status, reply.body == data) == (path, 200, True)
        assert reply.headers["content-type"] == "application/octet-stream"
        assert reply.headers["etag"] == f'"{hashlib.sha256(data).hexdigest()}"'
        assert reply.headers["accept-ranges"] == "bytes"
        assert "immutable" in reply.headers["cache-control"]
        assert "max-age=31536000" in reply.headers["cache-control"]
        assert "last-modified" in reply.headers
        assert "content-encoding" not in reply.headers
        head = py.head(path)
        assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(data)))
        assert head.headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize("pad", [0, 300_000])
def test_ranges_of_a_file(py, publish, pad):
    project = f"ranged-{pad}"
    filename, data = publish(project, "1.0", pad=pad)
    path, size = f"/packages/{project}/1.0/{filename}", len(data)
    for asked, start, end in (
        ("bytes=0-99", 0, 100),
        (f"bytes={size - 50}-{size - 1}", size - 50, size),
        ("bytes=10-", 10, size),
        ("bytes=-20", size - 20, size),
        (f"bytes=5-{size * 2}", 5, size),
        (f"bytes=-{size * 2}", 0, size),
    ):
        reply = py.get(path, Range=asked)
        assert (asked, reply.status) == (asked, 206)
        assert reply.body == data[start:end]
        assert reply.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
        assert reply.headers["content-length"] == str(end - start)
    for asked in (f"bytes={size}-", f"bytes={size + 5}-{size + 9}", "bytes=-0", "bytes=9-3"):
        reply = py.get(path, Range=asked)
        assert (reply.status, reply.headers["content-range"]) == (416, f"bytes */{size}")
    for asked in ("bytes=0-1,5-6", "items=0-1", "bytes=x"):
        reply = py.get(path, Range=asked)
        assert (reply.status, reply.body) == (200, data)
    head = py.head(path, Range="bytes=0-99")
    assert (head.status, head.headers["content-length"]) == (200, str(size))


def test_if_range_gives_the_part_only_of_the_same_file(py, publish):
    filename, data = publish("if-range", "1.0")
    path = f"/packages/if-range/1.0/{filename}"
    whole = py.get(path)
    assert py.get(path, Range="bytes=0-9", If_Range=whole.headers["etag"]).status == 206
    assert py.get(path, Range="bytes=0-9", If_Range='"other"').body == data
    assert py.get(path, Range="bytes=0-9", If_Range=whole.headers["last-modified"]).status == 206
    assert py.get(path, Range="bytes=0-9", If_Range="Thu, 01 Jan 1970 00:00:00 GMT").status == 200


def test_a_file_that_the_client_has_is_not_sent_again(py, publish):
    filename, _ = publish("kept", "1.0")
    path = f"/packages/kept/1.0/{filename}"
    whole = py.get(path)
    assert py.get(path, If_None_Match=whole.headers["etag"]).status == 304
    assert py.get(path, If_Modified_Since=whole.headers["last-modified"]).status == 304


def test_metadata_of_a_wheel_is_the_exact_bytes_inside(py, publish):
    metadata = make_metadata("exact", "1.0", description="with  odd   spacing\r\n\r\n")
    filename, _ = publish("exact", "1.0", metadata=metadata)
    for path in (f"/packages/exact/1.0/{filename}.metadata", f"/packages/{filename}.metadata"):
        reply = py.get(path)
        assert (reply.status, reply.body) == (200, metadata)
        assert "immutable" in reply.headers["cache-control"]
        assert reply.headers["etag"] == f'"{hashlib.sha256(metadata).hexdigest()}"'
    assert py.head(f"/packages/exact/1.0/{filename}.metadata").status == 200


def test_missing_companions_of_a_file_are_not_found(py, publish):
    filename, _ = publish("alone", "1.0", make=make_sdist)
    for suffix in (".metadata", ".asc", ".provenance", ".sig"):
        assert py.get(f"/packages/alone/1.0/{filename}{suffix}").status == 404
    assert py.get(f"/integrity/alone/1.0/{filename}/provenance").status == 404


def test_a_file_is_not_found_under_another_version_or_project(py, publish):
    filename, _ = publish("rightful", "1.0")
    publish("rightful", "2.0")
    publish("stranger", "1.0")
    for path in (
        f"/packages/rightful/2.0/{filename}",
        f"/packages/stranger/1.0/{filename}",
        f"/rightful/9.9/{filename}",
        f"/simple/stranger/{filename}",
        f"/pypi/rightful/2.0/?filename={filename}",
    ):
        assert (path, py.get(path).status) == (path, 404)


def test_local_versions_and_epochs_are_found_in_both_spellings(py, publish):
    wheel, data = publish("spelt", "1.0+cu121")
    for version in ("1.0+cu121", "1.0%2Bcu121"):
        for name in (wheel, wheel.replace("+", "%2B")):
            assert py.get(f"/packages/spelt/{version}/{name}").body == data
            assert py.get(f"/pypi/spelt/{version}/?filename={name}").body == data
    epoch, data = publish("spelt", "1!2.0")
    assert py.get(f"/packages/spelt/1!2.0/{epoch}").body == data
    assert py.get(f"/packages/spelt/1%212.0/{epoch.replace('!', '%21')}").body == data
    page = py.get("/simple/spelt/", Accept=JSON).json
    assert page["versions"] == ["1.0+cu121", "1!2.0"]
    for file in page["files"]:
        assert py.get("/" + file["url"].removeprefix("../../")).status == 200


def test_the_file_of_a_version_is_the_most_general_one(py, publish):
    native, native_data = publish("chosen", "1.0", tag="cp311-cp311-linux_x86_64")
    assert py.get("/pypi/chosen/1.0/").body == native_data
    _, sdist_data = publish("chosen", "1.0", make=make_sdist)
    assert py.get("/pypi/chosen/1.0/").body == sdist_data
    pure, pure_data = publish("chosen", "1.0")
    assert py.get("/pypi/chosen/1.0/").body == pure_data
    assert py.get("/pkgindex/chosen/1.0?packagetype=sdist").body == sdist_data
    assert py.get(f"/pypi/chosen/1.0/?filename={native}").body == native_data
    assert py.get("/pypi/chosen/1.0/?packagetype=bdist_egg").status == 404
    assert py.get("/pypi/chosen/2.0/").status == 404
    reply = py.get("/pypi/chosen/1.0/")
    assert f'filename="{pure}"' in reply.headers["content-disposition"]
    assert reply.headers["cache-control"] == "no-cache"  # a more general file may be published later


def test_a_downloaded_file_is_safe_in_a_browser(py, publish):
    filename, _ = publish("safe", "1.0")
    headers = py.get(f"/packages/safe/1.0/{filename}").headers
    assert headers["content-disposition"].startswith("attachment")
    assert "sandbox" in headers["content-security-policy"]
    assert headers.get("x-content-type-options") == "nosniff"

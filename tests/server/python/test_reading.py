"""Pages of a Python repository, in every representation and on every path."""

import gzip
import hashlib
import json
import re

import pytest
import zstandard

from tests.support.http_client import HttpClient
from tests.support.python_packages import make_sdist

pytestmark = pytest.mark.server

JSON = "application/vnd.pypi.simple.v1+json"
HTML_V1 = "application/vnd.pypi.simple.v1+html"
HTML = "text/html; charset=utf-8"
PIP = f"{JSON}, {HTML_V1}; q=0.1, text/html; q=0.01"
UV = f"{JSON}, {HTML_V1};q=0.2, text/html;q=0.01"


# Pages


@pytest.mark.parametrize("path", ["simple", "+simple", "%2Bsimple", "legacy/+simple", "legacy/%2Bsimple"])
def test_a_project_has_its_page_on_every_address_of_the_index(py, publish, path):
    filename, _ = publish("many-addresses", "1.0")
    reply = py.get(f"/{path}/many-addresses/")
    assert (reply.status, reply.headers["content-type"]) == (200, HTML)
    assert f">{filename}</a>" in reply.text
    assert "many-addresses" in py.get(f"/{path}/").text


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, HTML),
        ("*/*", HTML),
        ("text/html", HTML),
        (PIP, JSON),
        (UV, JSON),
        (f"{JSON}, */*;q=0.1", JSON),
        ("application/vnd.pypi.simple.latest+json", JSON),
        ("application/vnd.pypi.simple.latest+html", HTML_V1),
        (f"{HTML_V1}, {JSON};q=0.5", HTML_V1),
        (f"{HTML_V1}, {JSON}", JSON),
        (f"{JSON};q=0, text/html", HTML),
        (f"{JSON.upper()} ; Q=0.7 , text/html ;q=0.2", JSON),
        ("image/png", HTML),
        (f"{JSON};q=0", HTML),
    ],
)
@pytest.mark.parametrize("where", ["/simple/", "/simple/negotiated/"])
def test_the_form_of_a_page_follows_accept(py, publish, where, accept, expected):
    if py.get("/simple/negotiated/").status == 404:
        publish("negotiated", "1.0")
    reply = py.get(where, **({} if accept is None else {"Accept": accept}))
    assert (reply.status, reply.headers["content-type"]) == (200, expected)
    assert {each.strip() for each in reply.headers["vary"].split(",")} >= {"Accept"}
    assert (reply.body[:1] == b"{") == (expected == JSON)


def test_the_format_parameter_wins_over_accept(py, publish):
    publish("by-parameter", "1.0")
    encoded = JSON.replace("+", "%2B")
    assert py.get(f"/simple/by-parameter/?format={encoded}", Accept="text/html").headers["content-type"] == JSON
    assert py.get("/simple/by-parameter/?format=text/html", Accept=JSON).headers["content-type"] == HTML
    for plus in (encoded, JSON):  # curl users do not escape it
        for _ in range(2):  # rendered, and from the cache
            assert py.get(f"/simple/by-parameter/?format={plus}").headers["content-type"] == JSON
            assert py.get(f"/simple/?format={plus}").headers["content-type"] == JSON


def test_a_json_page_has_all_fields_of_its_files(py, publish):
    old, _ = publish("Told.Whole", "1.0", requires_python=">=3.8,<4")
    new, data = publish("Told.Whole", "1.10", make=make_sdist)
    page = py.get("/simple/told-whole/", Accept=JSON).json
    assert page["meta"]["api-version"] == "1.4"
    assert page["name"] == "told-whole"
    assert page["versions"] == ["1.0", "1.10"]
    assert page["project-status"] == {"status": "active"}
    assert [file["filename"] for file in page["files"]] == [old, new]
    wheel, sdist = page["files"]
    assert wheel["requires-python"] == ">=3.8,<4"
    assert wheel["yanked"] is False
    assert sdist["core-metadata"] is False
    assert sdist["size"] == len(data)
    assert sdist["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", sdist["upload-time"])
    assert sdist["url"] == f"../../packages/told-whole/1.10/{new}"
    assert py.get("/simple/told-whole/" + sdist["url"]).status in (200, 404)  # relative: resolved by clients
    assert py.get(f"/packages/told-whole/1.10/{new}").body == data
    metadata = py.get(f"/packages/told-whole/1.0/{old}.metadata").body
    assert wheel["core-metadata"] == {"sha256": hashlib.sha256(metadata).hexdigest()}


def test_an_html_page_has_the_same_fields_as_attributes(py, publish):
    filename, data = publish("in-html", "1.0", requires_python=">=3.8,<4")
    page = py.get("/simple/in-html/").text
    digest = hashlib.sha256(data).hexdigest()
    assert f'href="../../packages/in-html/1.0/{filename}#sha256={digest}"' in page
    assert 'data-requires-python="&gt;=3.8,&lt;4"' in page
    assert "data-core-metadata=" in page
    assert "data-dist-info-metadata=" in page
    assert "data-yanked" not in page
    assert '<meta name="pypi:repository-version" content="1.4">' in page


def test_the_list_shows_names_as_they_were_published_last(py, publish):
    publish("display-name", "1.0")
    assert "display-name" in {each["name"] for each in py.get("/simple/", Accept=JSON).json["projects"]}
    publish("Display.Name", "1.1")
    projects = {each["name"] for each in py.get("/simple/", Accept=JSON).json["projects"]}
    assert "Display.Name" in projects
    assert "display-name" not in projects
    assert '<a href="display-name/">Display.Name</a>' in py.get("/simple/").text


@pytest.mark.parametrize(
    ("asked", "location"),
    [
        ("/simple/Moved_Here/", "../moved-here/"),
        ("/simple/moved-here", "moved-here/"),
        ("/simple/MOVED...here", "moved-here/"),
        ("/%2Bsimple/Moved.Here", "moved-here/"),
        ("/simple/Moved_Here/?format=text/html&a=b%20c", "../moved-here/?format=text/html&a=b%20c"),
        ("/simple/moved-here?x=1", "moved-here/?x=1"),
        ("/simple", "simple/"),
        ("/%2Bsimple", "%2Bsimple/"),
        ("/simple?x", "simple/?x"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_other_spellings_are_redirected_once_to_a_relative_url(py, publish, method, asked, location):
    reply = py.ask(method, asked)
    assert (reply.status, reply.headers["location"]) == (301, location)


def test_a_repository_is_found_in_any_case_and_encoding(py, format_server, publish):
    publish("found-anyhow", "1.0")
    for path in ("MAIN/Py", "main/%70y", "m%61in/PY"):
        assert py.as_user().ask("GET", f"/../../{path}/simple/").status == 404  # paths are not folded up
    for path in ("MAIN/Py", "main/%70y", "m%61in/PY"):
        assert HttpClient(format_server.url).get(f"/repositories/{path}/simple/found-anyhow/").status == 200


def test_an_unknown_project_gets_a_short_uncacheable_404(py):
    for path in ("/simple/nothing-here/", "/packages/nothing-here/1.0/nothing_here-1.0-py3-none-any.whl"):
        reply = py.get(path)
        assert (reply.status, reply.headers["cache-control"]) == (404, "no-store")
        assert len(reply.body) < 200


# Caching and coding


def test_each_representation_has_its_own_validator(py, publish):
    publish("validated", "1.0", fields=[("Classifier", f"Private :: {n}") for n in range(3)])
    for n in range(8):
        publish("validated", f"2.{n}")
    seen = {}
    for accept in (JSON, "text/html"):
        for coding in ("identity", "gzip", "zstd"):
            reply = py.get("/simple/validated/", Accept=accept, Accept_Encoding=coding)
            assert reply.headers.get("content-encoding", "identity") == coding
            assert reply.headers["cache-control"] == "no-cache"
            assert "Accept-Encoding" in reply.headers["vary"]
            assert re.fullmatch(r"\d+", reply.headers["x-pypi-last-serial"])
            seen[accept, coding] = reply
    etags = {reply.headers["etag"] for reply in seen.values()}
    assert len(etags) == 6
    assert all(re.fullmatch(r'"[^"]+"', etag) for etag in etags)
    for accept in (JSON, "text/html"):
        plain = seen[accept, "identity"].body
        assert gzip.decompress(seen[accept, "gzip"].body) == plain
        assert zstandard.ZstdDecompressor().decompressobj().decompress(seen[accept, "zstd"].body) == plain
    for (accept, coding), reply in seen.items():
        for again in ("GET", "HEAD"):
            headers = {"Accept": accept, "Accept-Encoding": coding, "If-None-Match": reply.headers["etag"]}
            same = py.ask(again, "/simple/validated/", headers=headers)
            assert (same.status, same.body) == (304, b"")
            for name in ("etag", "cache-control", "vary"):
                assert same.headers[name] == reply.headers[name]
        other = seen[accept, "gzip" if coding != "gzip" else "zstd"].headers["etag"]
        different = py.get("/simple/validated/", Accept=accept, Accept_Encoding=coding, If_None_Match=other)
        assert different.status == 200


def test_pip_and_uv_and_curl_get_the_codings_they_ask_for(py, publish):
    for n in range(6):
        publish("coded", f"1.{n}")
    codings = {
        "gzip, deflate": "gzip",
        "gzip, deflate, zstd": "zstd",
        "gzip;q=0": None,
        "identity": None,
        "": None,
        "br": None,
        "*;q=0.5": "zstd",
        "gzip;q=1.0, zstd;q=0.1": "gzip",
    }
    for asked, coding in codings.items():
        assert py.get("/simple/coded/", Accept=JSON, Accept_Encoding=asked).headers.get("content-encoding") == coding


def test_a_change_shows_at_once_with_a_new_validator_and_serial(py, publish):
    publish("fresh-at-once", "1.0")
    first = py.get("/simple/fresh-at-once/", Accept=JSON)
    listed = py.get("/simple/", Accept=JSON)
    publish("fresh-at-once", "1.1")
    second = py.get("/simple/fresh-at-once/", Accept=JSON, If_None_Match=first.headers["etag"])
    assert second.status == 200
    assert second.json["versions"] == ["1.0", "1.1"]
    assert int(second.headers["x-pypi-last-serial"]) > int(first.headers["x-pypi-last-serial"])
    assert py.get("/simple/", Accept=JSON, If_None_Match=listed.headers["etag"]).status == 200
    publish("fresh-at-once-too", "1.0")
    # What mirrors compare: the serial in the list, on the page, and in the document of the project.
    listed = py.get("/simple/", Accept=JSON)
    serials = {each["name"]: each["_last-serial"] for each in listed.json["projects"]}
    assert serials["fresh-at-once"] == int(second.headers["x-pypi-last-serial"])
    assert py.get("/pypi/fresh-at-once/json").json["last_serial"] == serials["fresh-at-once"]
    assert max(serials.values()) == serials["fresh-at-once-too"] == listed.json["meta"]["_last-serial"]


def test_head_of_a_page_has_the_headers_of_get(py, publish):
    publish("headed", "1.0")
    for headers in ({}, {"Accept": JSON}, {"Accept-Encoding": "gzip"}):
        got = py.ask("GET", "/simple/headed/", headers=headers)
        head = py.ask("HEAD", "/simple/headed/", headers=headers)
        assert (head.status, head.body) == (200, b"")
        for name in ("content-length", "content-type", "etag", "cache-control", "vary"):
            assert head.headers[name] == got.headers[name]


# JSON metadata


@pytest.mark.parametrize("word", ["pypi", "pkgindex"])
def test_json_metadata_is_served_on_both_paths(py, format_server, publish, word):
    project = f"described-{word}"
    publish(project, "1.0", summary="first", requires_python=">=3.8")
    wheel, data = publish(project, "1.1", summary="second")
    publish(project, "2.0rc1", summary="not yet")
    document = py.get(f"/{word}/{project}/json")
    assert (document.status, document.headers["content-type"]) == (200, "application/json")
    assert document.headers["access-control-allow-origin"] == "*"
    value = document.json
    assert value["info"]["version"] == "1.1"
    assert value["info"]["summary"] == "second"
    assert value["info"]["name"] == project
    assert list(value["releases"]) == ["1.0", "1.1", "2.0rc1"]
    assert "vulnerabilities" not in value  # this server was given no advisories: it does not say that there are none
    [file] = value["urls"]
    assert file["filename"] == wheel
    assert file["url"] == f"{format_server.url}/repositories/main/py/packages/{project}/1.1/{wheel}"
    assert file["digests"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert file["packagetype"] == "bdist_wheel"
    assert file["python_version"] == "py3"
    assert file["size"] == len(data)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", file["upload_time"])
    one = py.get(f"/{word}/{project}/1.0.0/json").json
    assert (one["info"]["version"], one["info"]["requires_python"]) == ("1.0", ">=3.8")
    assert list(one["releases"]) == ["1.0", "1.1", "2.0rc1"]
    data_form = py.get(f"/{word}-data/{project}/json").json
    assert [each["filename"] for each in data_form["files"]][-1].startswith("described_")
    again = py.get(f"/{word}/{project}/json", If_None_Match=document.headers["etag"])
    assert again.status == 304
    for path in (f"/{word}/{project}/9/json", f"/{word}/not-{project}/json", f"/{word}-data/no-{project}/json"):
        missing = py.get(path)
        assert (missing.status, missing.json) == (404, {"message": "Not Found"})
        assert missing.headers["content-type"] == "application/json"


# The repository itself


def test_a_repository_describes_itself_in_json_and_html(py, publish):
    publish("info-page", "1.0")
    value = py.get("/", Accept="application/json").json
    assert value["repository"] == "main/py"
    assert set(value) >= {"repository", "title", "description", "packages_count", "downloads_count", "last_updated"}
    assert value["packages_count"] >= 1
    page = py.get("/", Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert page.headers["content-type"] == HTML
    assert "simple/" in page.text
    assert py.get("").status in (200, 301)


def test_the_last_update_is_the_last_change_of_content_or_settings(repository, publish, api):
    where = repository("dated")
    uid = next(each["id"] for each in api.get("/repository/list").json["items"] if each["name"] == "dated")
    told = [where.get("/", Accept="application/json").json["last_updated"]]

    def changed():
        told.append(where.get("/", Accept="application/json").json["last_updated"])
        assert told[-1] > told[-2]

    filename, _ = publish("dated", "1.0", where=where)
    changed()
    assert where.post_json("/pypi/dated/1.0/yank", {"reason": "x"}).status == 200
    changed()
    assert where.delete(f"/packages/dated/1.0/{filename}").status == 200
    changed()
    assert api.post_json(f"/repository/{uid}", {"description": "other"}, "PATCH").status == 200
    changed()


def test_an_inactive_format_word_is_not_a_project(py):
    for path in ("/packages/", "/pypi", "/legacy/", "/nowhere", "/a/b/c/d/e"):
        assert py.get(path).status in (404, 405), path


def test_pages_hold_no_markup_of_publishers(py, publish):
    publish("marked-up", "1.0", requires_python='>=3.8,!="><script>alert(1)</script>')
    page = py.get("/simple/marked-up/").text
    assert "<script>" not in page
    assert json.loads(py.get("/simple/marked-up/", Accept=JSON).body)["files"]

"""Yanks, deletions and project status, and their immediate effect on pages and files."""

import xml.etree.ElementTree as ET
from functools import partial

import pytest

from tests.support import upload_forms
from tests.support.python_packages import make_sdist, make_wheel

pytestmark = pytest.mark.server

JSON = "application/vnd.pypi.simple.v1+json"


def page(where, project):
    return where.get(f"/simple/{project}/", Accept=JSON).json


@pytest.mark.parametrize("word", ["pypi", "pkgindex"])
def test_a_version_is_marked_as_yanked_until_it_is_restored(py, publish, word):
    project = f"yanked-{word}"
    filename, _ = publish(project, "1.0")
    publish(project, "2.0")
    py.get(f"/simple/{project}/", Accept=JSON)  # cached from here on
    reply = py.post_json(f"/{word}/{project}/1.0.0/yank", {"reason": "broken <b>build</b>"})
    assert (reply.status, reply.json["version"], reply.json["state"]) == (200, "1.0", "yanked")
    old, new = page(py, project)["files"]
    assert (old["yanked"], new["yanked"]) == ("broken <b>build</b>", False)
    assert 'data-yanked="broken &lt;b&gt;build&lt;/b&gt;"' in py.get(f"/simple/{project}/").text
    assert py.get(f"/packages/{filename}").status == 200  # a yanked file can still be downloaded
    told = py.get(f"/pypi/{project}/1.0/json").json
    assert (told["info"]["yanked"], told["info"]["yanked_reason"]) == (True, "broken <b>build</b>")
    assert py.post(f"/{word}/{project}/1.0/unyank").json["state"] == "live"
    assert [file["yanked"] for file in page(py, project)["files"]] == [False, False]


def test_the_reason_of_a_yank_is_optional_and_comes_from_query_form_or_json(py, publish):
    publish("reasons", "1.0")
    yank = "/pypi/reasons/1.0/yank"
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    for ask, expected in (
        (lambda: py.post(yank + "?reason=by%20query"), "by query"),
        (lambda: py.post(yank, b"reason=by+form", **form), "by form"),
        (lambda: py.post_json(yank, {"reason": "by\njson"}), "by json"),
        (lambda: py.post(yank), True),
    ):
        assert ask().status == 200
        assert page(py, "reasons")["files"][0]["yanked"] == expected
    for body in ("[]", "{", '{"reason": 1}'):
        assert py.ask("POST", yank, body, {"Content-Type": "application/json"}).status == 400
    assert py.post(yank, b"x" * 70_000).status == 413


def test_the_newest_version_in_json_metadata_is_not_a_yanked_one(py, publish):
    publish("newest", "1.0")
    publish("newest", "2.0")
    assert py.get("/pypi/newest/json").json["info"]["version"] == "2.0"
    assert py.post("/pypi/newest/2.0/yank").status == 200
    assert py.get("/pypi/newest/json").json["info"]["version"] == "1.0"


def test_a_deleted_file_is_gone_everywhere_at_once(py, publish):
    filename, data = make_wheel("deleted", "1.0")
    assert py.post_form("/legacy/", upload_forms.uv("deleted", "1.0", filename, data)).status == 200
    publish("deleted", "1.0", make=make_sdist)
    addresses = [
        f"/packages/deleted/1.0/{filename}",
        f"/deleted/1.0/{filename}",
        f"/packages/{filename}",
        f"/simple/deleted/{filename}",
        f"/packages/deleted/1.0/{filename}.metadata",
        f"/packages/deleted/1.0/{filename}.provenance",
    ]
    for address in addresses:
        for _ in range(2):  # the second response comes from the cache
            assert py.get(address).status == 200
    reply = py.delete(f"/packages/Deleted/1.0.0/{filename}")
    assert reply.status == 200
    assert sorted(reply.json["deleted"]) == sorted({addresses[0][1:], addresses[4][1:], addresses[5][1:]})
    for address in addresses:
        assert (address, py.get(address).status) == (address, 404)
    assert len(page(py, "deleted")["files"]) == 1
    assert py.delete(f"/packages/deleted/1.0/{filename}").status == 404


def test_a_project_without_versions_is_gone(py, publish):
    publish("last-one", "1.0")
    publish("last-one", "1.1")
    assert "last-one" in py.get("/simple/").text
    assert py.delete("/pypi/last-one/1.0").status == 200
    assert page(py, "last-one")["versions"] == ["1.1"]
    assert py.delete("/pkgindex/last-one/1.1/").status == 200
    for path in ("/simple/last-one/", "/pypi/last-one/json"):
        for _ in range(2):
            assert py.get(path).status == 404
    assert "last-one" not in py.get("/simple/").text
    assert py.delete("/pypi/last-one/1.1").status == 404


def test_the_name_of_a_deleted_file_cannot_be_used_again(py, publish):
    filename, data = publish("burned", "1.0")
    assert py.delete(f"/packages/burned/1.0/{filename}").status == 200
    _, other = make_wheel("burned", "1.0", pad=10)
    for reply in (
        py.put(f"/burned/1.0/{filename}", other),
        py.post_form("/legacy/", upload_forms.twine("burned", "1.0", filename, other)),
        py.put(f"/burned/1.0/{filename}", data),
        py.post_form("/legacy/", upload_forms.twine("burned", "1.0", filename, data)),
    ):
        assert reply.status == 400
        assert reply.reason.startswith("File already exists")
        assert "policy.reuse_deleted_names" in reply.reason
    assert py.get("/simple/burned/").status == 404


def test_the_name_of_a_deleted_file_can_be_used_again_after_a_policy_change(repository, publish, api):
    where = repository("turned")
    filename, data = publish("turned", "1.0", where=where)
    assert where.delete(f"/packages/turned/1.0/{filename}").status == 200
    assert where.put(f"/turned/1.0/{filename}", data).status == 400
    uid = next(each["id"] for each in api.get("/repository/list").json["items"] if each["name"] == "turned")
    set_policy = partial(api.post_json, f"/repository/{uid}/config/policy", method="PUT")
    assert set_policy({"reuse_deleted_names": True}).status == 200
    assert where.put(f"/turned/1.0/{filename}", data).status == 201
    assert set_policy({"reuse_deleted_names": False}).status == 200
    assert where.get(f"/packages/{filename}").body == data


def test_the_name_of_a_deleted_file_can_be_used_again_if_the_policy_allows_it(repository, publish):
    where = repository("reusable")
    filename, _ = publish("reused", "1.0", where=where)
    address = f"/packages/reused/1.0/{filename}"
    assert where.get(address).headers["cache-control"] == "no-cache"
    assert where.delete(address).status == 200
    _, other = make_wheel("reused", "1.0", pad=10)
    assert where.put(f"/reused/1.0/{filename}", other).status == 201
    assert where.get(address).body == other


@pytest.mark.parametrize("status", ["active", "archived", "deprecated"])
def test_a_status_shows_in_both_forms_of_the_page(py, publish, status):
    project = f"status-{status}"
    publish(project, "1.0")
    reply = py.post_json(f"/pypi/{project}/status", {"status": status, "reason": 'so "be" it'}, "PUT")
    assert reply.status == 200
    told = page(py, project)
    assert told["project-status"] == {"status": status, "reason": 'so "be" it'}
    assert len(told["files"]) == 1
    html = py.get(f"/simple/{project}/").text
    assert f'<meta name="pypi:project-status" content="{status}">' in html
    assert '<meta name="pypi:project-status-reason" content="so &quot;be&quot; it">' in html
    assert project in {each["name"] for each in py.get("/simple/", Accept=JSON).json["projects"]}


def test_a_quarantined_project_offers_nothing_and_is_in_no_list(py, publish):
    publish("suspect", "1.0")
    assert "suspect" in py.get("/simple/").text
    assert py.post_json("/pkgindex/suspect/status", {"status": "quarantined"}, "PUT").status == 200
    told = page(py, "suspect")
    assert (told["files"], told["project-status"]["status"]) == ([], "quarantined")
    assert "suspect-1.0" not in py.get("/simple/suspect/").text
    assert "suspect" not in py.get("/simple/").text
    assert "suspect" not in {each["name"] for each in py.get("/simple/", Accept=JSON).json["projects"]}
    publish("suspect", "1.1")
    assert page(py, "suspect")["files"] == []
    assert py.post_json("/pypi/suspect/status", {"status": "active"}, "PUT").status == 200
    assert page(py, "suspect")["versions"] == ["1.0", "1.1"]
    assert "suspect" in py.get("/simple/").text


def test_a_status_that_does_not_exist_is_refused(py, publish):
    publish("no-status", "1.0")
    for value in ({"status": "gone"}, {}, {"status": 1}, {"status": "active", "reason": []}):
        assert py.post_json("/pypi/no-status/status", value, "PUT").status == 400
    assert py.post_json("/pypi/no-such-project/status", {"status": "active"}, "PUT").status == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/pypi/{}/9.9/yank"),
        ("POST", "/pypi/not-{}/1.0/yank"),
        ("POST", "/pypi/{}/9.9/unyank"),
        ("DELETE", "/pypi/{}/9.9"),
        ("DELETE", "/packages/{}/1.0/other-1.0-py3-none-any.whl"),
        ("DELETE", "/packages/{0}/9.9/{0}-9.9-py3-none-any.whl"),
        ("DELETE", "/packages/{0}/9.9/{0}-1.0-py3-none-any.whl"),
    ],
)
def test_changes_of_missing_projects_and_files_are_not_found(py, publish, method, path):
    publish("thinair", "1.0")  # each time: the same file again is no change
    assert py.ask(method, path.format("thinair"), b"").status == 404
    assert page(py, "thinair")["versions"] == ["1.0"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/pypi/guarded/1.0/yank"),
        ("POST", "/pypi/guarded/1.0/unyank"),
        ("DELETE", "/pypi/guarded/1.0"),
        ("DELETE", "/packages/guarded/1.0/guarded-1.0-py3-none-any.whl"),
        ("PUT", "/pypi/guarded/status"),
    ],
)
def test_changes_need_permission(py, as_token, publish, method, path):
    publish("guarded", "1.0")  # each time: the same file again is no change
    nobody = py.as_user().ask(method, path, b'{"status": "archived"}')
    assert (nobody.status, nobody.headers["www-authenticate"][:5]) == (401, "Basic")
    assert as_token("reader").ask(method, path, b'{"status": "archived"}').status == 403
    told = page(py, "guarded")
    assert told["project-status"] == {"status": "active"}
    assert [file["yanked"] for file in told["files"]] == [False]


@pytest.mark.parametrize("path", ["/pypi", "/pypi/", "/pkgindex"])
def test_the_search_of_old_pip_gets_a_fault_that_it_can_print(py, path):
    call = b"<?xml version='1.0'?><methodCall><methodName>search</methodName></methodCall>"
    reply = py.post(path, call, Content_Type="text/xml")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/xml; charset=utf-8")
    fault = ET.fromstring(reply.text).find("fault")
    assert fault is not None
    assert fault.find(".//int").text == "-32500"
    assert "search is not supported" in fault.find(".//string").text

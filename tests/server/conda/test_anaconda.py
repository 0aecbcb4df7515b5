"""Uploads as anaconda-client does them: a stage, a form without credentials, a commit; and what it asks and removes."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from pkgrepo.formats.conda.anaconda.uploads import MOST_OPEN
from pkgrepo.formats.conda.files import FORM_OVERHEAD
from tests.support.anaconda_uploads import AnacondaUpload
from tests.support.conda_packages import make_conda
from tests.support.http_client import HttpClient
from tests.support.python_index import USER

from .conftest import MAX_UPLOAD

pytestmark = pytest.mark.server


@pytest.fixture
def begin(format_server, ch):
    """Begin an upload to a channel."""
    return lambda name, where=ch, **more: AnacondaUpload(format_server.url, where, name, **more)


def is_listed(where, name):
    return name in where.get("/noarch/repodata.json").text


def test_a_package_is_visible_when_it_is_committed_and_not_before(begin, ch):
    upload = begin("three", sha256=None)
    assert upload.post().status == 201
    assert not is_listed(ch, "three-1.0")
    assert ch.get("/noarch/three-1.0-py_0.conda").status == 404
    reply = upload.commit()
    assert reply.status == 200
    assert reply.json["url"] == f"{ch.url}/noarch/three-1.0-py_0.conda"
    assert is_listed(ch, "three-1.0")
    assert ch.get("/noarch/three-1.0-py_0.conda").body == upload.data
    again = begin("three")
    assert (again.staged.status, "already exists" in again.staged.json["error"]) == (409, True)


def test_a_ticket_is_used_once_also_by_parallel_requests(begin):
    upload = begin("once")
    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(lambda _: upload.post().status, range(8)))
    assert statuses == [201] + [403] * 7
    assert upload.post().status == 403
    assert upload.commit().status == 200
    assert upload.post().status == 403


def test_a_wrong_ticket_leaves_the_right_one_in_force(begin, format_server):
    upload, other = begin("guessed"), begin("guesser")
    wrong = [other.staged.json["form_data"]["ticket"], "x", "", "ü" * 100]
    for ticket in wrong:
        refused = upload.post(ticket=ticket)
        assert (refused.status, "ticket" in refused.text, refused.headers["content-type"]) == (
            403,
            True,
            "application/xml",
        )
    assert upload.post().status == 201
    strangers = HttpClient(format_server.url)
    path = "/api/conda/uploads/00000000-0000-0000-0000-000000000000"
    assert strangers.post_form(path, [("ticket", "x"), ("file", "a", b"x")]).status == 403
    assert strangers.get(path).status == 405
    assert upload.staged.json["form_data"]["ticket"] not in format_server.output


def test_a_ticket_after_the_file_is_none(begin, format_server):
    upload = begin("late")
    path = upload.staged.json["post_url"].removeprefix(format_server.url)
    ticket = upload.staged.json["form_data"]["ticket"]
    form = [("file", "late", upload.data), ("ticket", ticket)]
    assert HttpClient(format_server.url).post_form(path, form).status == 403


def test_a_form_without_a_length_is_read_to_the_limit(begin):
    upload = begin("endless")
    head = b'--b\r\nContent-Disposition: form-data; name="junk"\r\n\r\n'
    pieces = [head, *[bytes(1 << 16)] * ((MAX_UPLOAD + FORM_OVERHEAD) >> 16), b"x"]
    form = {"Content-Type": "multipart/form-data; boundary=b"}
    reply = upload.strangers.ask("POST", upload.path, iter(pieces), form)
    assert (reply.status, "<Error>" in reply.text) == (413, True)
    assert [upload.post().status, upload.commit().status] == [201, 200]


@pytest.mark.parametrize(
    ("data", "fields", "status", "code"),
    [
        (make_conda("other"), {}, 400, "invalid"),
        (b"no zip archive", {}, 400, "invalid"),
        (b"", {}, 400, "invalid"),
        (make_conda("wrong", subdir="linux-64"), {}, 400, "invalid"),
        (make_conda("wrong"), {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}, 400, "InvalidDigest"),
        (make_conda("wrong"), {"Content-MD5": "<&>"}, 400, "invalid"),
        (make_conda("wrong"), {"Content-Length": "1"}, 400, "invalid"),
        (bytes(MAX_UPLOAD + 1), {}, 413, "too_large"),
        (make_conda("wrong"), {"Content-Length": "9" * 5000}, 413, "FIELD_TOO_LARGE"),
    ],
    ids=["other", "no-zip", "empty", "other-folder", "md5", "no-md5", "size", "too-large", "long-field"],
)
def test_another_file_is_refused_in_xml(begin, ch, data, fields, status, code):
    upload = begin("wrong")
    reply = upload.post(data, **fields)
    assert (reply.status, f"<Code>{code}</Code>" in reply.text) == (status, True), reply.text
    assert upload.commit().status in (404, 409)
    assert not is_listed(ch, "wrong")


def test_the_file_has_the_digest_that_was_announced(begin):
    upload = begin("digest", sha256=hashlib.sha256(make_conda("digest")).hexdigest())
    refused = upload.post(make_conda("digest", license="BSD"))
    assert (refused.status, "InvalidDigest" in refused.text) == (400, True)
    assert upload.post().status == 403  # the ticket is used
    again = begin("digest", sha256=hashlib.sha256(make_conda("digest")).hexdigest())
    assert [again.post().status, again.commit().status] == [201, 200]


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("any/demo/1.0/noarch/other-1.0-py_0.conda", {}),
        ("any/demo/2.0/noarch/demo-1.0-py_0.conda", {}),
        ("any/demo/1.0/linux-128/demo-1.0-py_0.conda", {}),
        ("any/demo/1.0/demo-1.0-py_0.conda", {}),
        ("any/demo/1.0/noarch/" + "d" * 300 + "-1.0-py_0.conda", {}),
        ("any/demo/1.0/noarch/demo-1.0-py_0.conda", {"sha256": "zz"}),
        ("any/demo/1.0/noarch/demo-1.0-py_0.conda", {"sha256": 1}),
        ("any/demo/1.0/noarch/demo-1.0-py_0.conda", {"distribution_type": "pypi"}),
        ("any/demo/1.0/noarch/demo-1.0-py_0.conda", []),
    ],
    ids=["name", "version", "folder", "no-folder", "long", "digest", "digest-type", "type", "list"],
)
def test_a_malformed_stage_is_refused(ch, target, body):
    reply = ch.post_json(f"/stage/{target}", body)
    assert (reply.status, bool(reply.json["error"])) == (400, True)


def test_stage_and_commit_need_the_permission_and_their_own_user(begin, repository, token_texts, api):
    assert begin("mine", where=repository("ch").as_user()).staged.status == 401
    reader = repository("ch").as_user("token", token_texts["reader"])
    assert begin("mine", where=reader).staged.status == 403
    upload = begin("mine")
    assert upload.commit().status == 409  # nothing has arrived
    assert upload.post().status == 201
    assert upload.commit(repository("ch").as_user()).status == 401
    assert upload.commit(reader).status == 403
    assert upload.commit(dist_id=7).status == 404
    assert upload.commit(dist_id="00000000-0000-0000-0000-000000000000").status == 404
    assert upload.commit(repository("lax")).status == 404
    name, password = "conda-other", "correct horse battery"
    created = api.post_json("/users", {"username": name, "password": password}).json
    rights = {"default_repository_actions": ["read", "write"]}
    assert api.post_json(f"/users/{created['id']}/permissions", rights, "PUT").status == 200
    assert upload.commit(repository("ch").as_user(name, password)).status == 404
    assert upload.commit().status == 200


def test_of_two_uploads_of_one_name_the_first_commit_wins(begin, ch):
    first, second = begin("race"), begin("race", data=make_conda("race", license="BSD"))
    assert (first.post().status, second.post().status) == (201, 201)
    assert first.commit().status == 200
    assert second.commit().status == 409
    assert second.commit().status == 404  # it is over
    assert ch.get("/noarch/race-1.0-py_0.conda").body == first.data


def test_a_user_has_so_many_unfinished_uploads(begin, repository, token_texts):
    by_token = repository("by-token").as_user("token", token_texts["writer"])
    statuses = [begin(f"many{number}", where=by_token).staged.status for number in range(MOST_OPEN + 2)]
    assert statuses == [200] * MOST_OPEN + [403] * 2


def test_a_private_channel_takes_the_file_without_credentials(begin, repository):
    upload = begin("secret", where=repository("private"))
    assert [upload.post().status, upload.commit().status] == [201, 200]
    for path in ("/user/any", "/package/any/secret", "/dist/" + upload.target, "/download/" + upload.target):
        assert repository("private").as_user().get(path).status == 401


def test_what_is_published_is_described_downloaded_and_removed(push, repository):
    lax = repository("lax")
    for version in ("1.0", "1.9", "1.10"):
        assert push("told", version, where=lax, documents={"about.json": {"summary": "A told one"}}).status == 201
    package = lax.get("/package/any/told").json
    assert (package["versions"], package["summary"]) == (["1.0", "1.9", "1.10"], "A told one")
    assert [each["basename"] for each in package["files"]] == [
        f"noarch/told-{version}-py_0.conda" for version in ("1.10", "1.9", "1.0")
    ]
    [file] = lax.get("/release/any/told/1.9").json["distributions"]
    assert (file["version"], file["type"]) == ("1.9", "conda")
    target = f"any/told/1.9/{file['basename']}"
    assert lax.get(f"/dist/{target}").json["attrs"]["name"] == "told"
    assert len(lax.get(f"/download/{target}").body) == file["size"]
    assert lax.as_user().delete(f"/dist/{target}").status == 401
    assert lax.delete(f"/dist/{target}").status == 200
    assert lax.get("/release/any/told/1.9").status == 404
    assert lax.delete("/release/any/told/1.10").status == 201
    assert b"told-1.10" not in lax.get("/noarch/repodata.json").body
    assert lax.delete("/package/any/told").status == 201
    assert b"told" not in lax.get("/noarch/repodata.json").body
    assert lax.delete("/package/any/told").status == 404


def test_a_removed_name_is_refused_before_the_file_is_sent(begin, push, ch):
    assert push("scorched").status == 201
    assert ch.delete("/package/any/scorched").status == 201
    assert begin("scorched").staged.status == 409


def test_a_login_needs_a_name_and_a_password_and_gives_a_token(ch, token_texts):
    assert ch.as_user().post_json("/authentications", {"note": "me"}).status == 401
    assert ch.as_user("token", token_texts["reader"]).post_json("/authentications", {}).status == 403
    token = ch.post_json("/authentications", {"note": "me@host"}).json["token"]
    bearer = {"Authorization": f"token {token}"}
    assert ch.ask("GET", "/user", headers=bearer).json["login"] == USER
    assert ch.ask("DELETE", "/authentications", headers=bearer).status == 201
    assert ch.ask("GET", "/user", headers=bearer).status == 401
    assert ch.delete("/authentications").status == 400  # a password cannot be given up
    assert ch.as_user().get("/user").status == 401


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/package/any", 400),
        ("GET", "/package/any/a/b/c", 400),
        ("GET", "/release/any/demo", 400),
        ("GET", "/dist/any/none/1.0/noarch/none-1.0-py_0.conda", 404),
        ("GET", "/user/a/b", 404),
        ("GET", "/authentication-type", 404),
        ("PATCH", "/user", 404),
        ("PUT", "/stage/any/demo/1.0/noarch/demo-1.0-py_0.conda", 405),
    ],
)
def test_other_paths_are_refused(ch, method, path, status):
    assert ch.ask(method, path).status == status


def test_a_channel_of_a_plain_upload_may_be_called_like_a_request(ch):
    assert ch.put("/user/noarch/plainly-1.0-py_0.conda", make_conda("plainly")).status == 201

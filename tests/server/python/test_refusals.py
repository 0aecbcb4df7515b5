"""
Uploads that are refused: status, reason phrase and body, since tools print one or the other.

twine, hatch and poetry print the reason phrase, uv prints the body, as text or as problem+json.
"""

import re
import socket

import pytest

from tests.server.python.conftest import MAX_UPLOAD
from tests.support import upload_forms
from tests.support.http_client import BOUNDARY, HttpClient, basic, form_body, read_reply
from tests.support.python_packages import make_metadata, make_sdist, make_wheel, make_zip
from tests.support.tarballs import make_tar_gz
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

JSON = "application/vnd.pypi.simple.v1+json"
UV_ACCEPT = "application/json;q=0.9, text/plain;q=0.8, text/html;q=0.7"


def assert_refused(reply, status, sentence):
    """Check that the message is in the reason phrase and in the body, and that the response must not be cached."""
    assert (reply.status, bool(re.search(sentence, reply.reason))) == (status, True), reply
    assert reply.headers["cache-control"] == "no-store"
    if reply.headers["content-type"].startswith("application/problem+json"):
        problem = reply.json
        assert set(problem) >= {"type", "title", "status", "detail"}
        assert problem["status"] == status
        assert re.search(sentence, problem["detail"])
    else:
        assert reply.headers["content-type"] == "text/plain; charset=utf-8"
        assert re.search(sentence, reply.text)


def wheel_form(project="refused", version="1.0", **changes):
    filename, data = make_wheel(project, version)
    return upload_forms.replaced(upload_forms.twine(project, version, filename, data), **changes)


REFUSED_FORMS = {
    "another action": (wheel_form(action="verify"), 400, ":action must be file_upload"),
    "no action": (wheel_form(action=None), 400, ":action must be file_upload"),
    "a retired action": (wheel_form(action="submit"), 410, "submit is not supported any more"),
    "a retired action without a file": (wheel_form(action="doc_upload")[:-1], 410, "doc_upload is not supported"),
    "another protocol": (wheel_form(protocol_version="2"), 400, "protocol_version '2' is not known"),
    "metadata of the future": (wheel_form(metadata_version="3.0"), 400, "metadata_version '3.0' is not known"),
    "an egg": (wheel_form(filetype="bdist_egg"), 400, "filetype 'bdist_egg' is not taken"),
    "the wrong kind": (wheel_form(filetype="sdist"), 400, "filetype sdist"),
    "another name": (wheel_form(name="other"), 400, "is not a file of project 'other'"),
    "another version": (upload_forms.replaced(wheel_form(), version="2.0"), 400, "the form has the version '2.0'"),
    "a wrong sha256": (wheel_form(sha256_digest="0" * 64), 400, "sha256 digest mismatch"),
    "a wrong md5": (wheel_form(md5_digest="0" * 32), 400, "md5 digest mismatch"),
    "a wrong blake2": (wheel_form(blake2_256_digest="0" * 64), 400, "blake2b_256 digest mismatch"),
    "a digest that is none": (wheel_form(sha256_digest="xyz"), 400, "sha256_digest"),
    "no file": (wheel_form()[:-1], 400, "no file part named 'content'"),
    "two files": ([*wheel_form(), wheel_form()[-1]], 400, "more than one file part"),
    "a file that is a field": ([*wheel_form()[:-1], ("content", "text")], 400, "has no file name"),
    "two names": ([("name", "other"), *wheel_form()], 400, "name"),
    "attestations of another file": (
        [*wheel_form(), ("attestations", upload_forms.attestations("other-1.0-py3-none-any.whl", b""))],
        400,
        "attestation",
    ),
    "attestations that are no JSON": ([*wheel_form(), ("attestations", "[")], 400, "attestations cannot be read"),
    "a field of megabytes": ([("description", "x" * (5 * 1024 * 1024)), *wheel_form()], 413, "longer than"),
}


@pytest.mark.parametrize("case", REFUSED_FORMS)
@pytest.mark.parametrize("accept", [None, UV_ACCEPT])
def test_a_form_is_refused_with_a_sentence(py, case, accept):
    form, status, sentence = REFUSED_FORMS[case]
    headers = {} if accept is None else {"Accept": accept}
    reply = py.post_form("/legacy/", form, **headers)
    assert_refused(reply, status, sentence)
    assert ("problem+json" in reply.headers["content-type"]) == (accept is not None)
    assert py.get("/simple/refused/").status == 404


REFUSED_NAMES = {
    "refused-1.0.exe": "neither a wheel",
    "refused-1.0.egg": "neither a wheel",
    "refused-1.0-1.noarch.rpm": "neither a wheel",
    "refused-1.0.tar.bz2": "neither a wheel",
    ".refused-1.0.tar.gz": "begins with a dot",
    "refused-1.0/../x.tar.gz": "slash",
    "refused\\-1.0.tar.gz": "slash",
    "refüsed-1.0.tar.gz": "ASCII",
    "refused 1.0.tar.gz": "blanks",
    "refused-1.0-py3-none.whl": "not a wheel's name",
    "refused-x.y-py3-none-any.whl": "PEP 440",
    "refused-1.0-b1-py3-none-any.whl": "build tag",
    "refused-" + "1" * 260 + ".tar.gz": "longer than 255",
    "refused.tar.gz": "PEP 440",
}


@pytest.mark.parametrize("name", REFUSED_NAMES)
def test_a_file_name_is_refused_with_a_sentence(py, name):
    form = [*wheel_form()[:-1], ("content", name, make_wheel("refused", "1.0")[1])]
    assert_refused(py.post_form("/legacy/", form), 400, REFUSED_NAMES[name])


def wheel_of(metadata=None, drop=(), add=None, project="refused"):
    info = f"{project}-1.0.dist-info"
    members = {
        f"{project}/__init__.py": b"",
        f"{info}/METADATA": metadata or make_metadata(project, "1.0"),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        **(add or {}),
    }
    members[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in (*members, f"{info}/RECORD")).encode()
    return make_zip({path: data for path, data in members.items() if path.rsplit("/", 1)[-1] not in drop})


REFUSED_FILES = {
    "no archive": ("refused-1.0-py3-none-any.whl", b"not a zip", "zip"),
    "an empty file": ("refused-1.0-py3-none-any.whl", b"", "zip"),
    "a tar called wheel": ("refused-1.0-py3-none-any.whl", make_sdist("refused", "1.0")[1], "zip"),
    "no METADATA": ("refused-1.0-py3-none-any.whl", wheel_of(drop={"METADATA"}), "METADATA"),
    "no RECORD": ("refused-1.0-py3-none-any.whl", wheel_of(drop={"RECORD"}), "RECORD"),
    "metadata of another": ("refused-1.0-py3-none-any.whl", wheel_of(make_metadata("other", "1.0")), "other"),
    "metadata of another version": ("refused-1.0-py3-none-any.whl", wheel_of(make_metadata("refused", "2")), "2"),
    "a way out": ("refused-1.0-py3-none-any.whl", wheel_of(add={"../x": b""}), "plain relative path"),
    "trailing bytes": ("refused-1.0-py3-none-any.whl", wheel_of() + b"trailing", "refused-1.0"),
    "no PKG-INFO": ("refused-1.0.tar.gz", make_tar_gz({"refused-1.0/setup.py": b""}), "PKG-INFO"),
    "no gzip": ("refused-1.0.tar.gz", b"\0" * 1000, "gzip"),
    "a tar that ends early": ("refused-1.0.tar.gz", make_sdist("refused", "1.0", pad=5000)[1][:2000], "refused-1.0"),
    "two tops": (
        "refused-1.0.tar.gz",
        make_tar_gz({"else/x": b"", "refused-1.0/PKG-INFO": make_metadata("refused", "1.0")}),
        "refused-1.0",
    ),
}


@pytest.mark.parametrize("case", REFUSED_FILES)
@pytest.mark.parametrize("raw", [False, True])
def test_a_file_is_refused_with_a_sentence_that_names_it(py, case, raw):
    filename, data, sentence = REFUSED_FILES[case]
    if raw:
        reply = py.put(f"/refused/1.0/{filename}", data)
    else:
        reply = py.post_form("/legacy/", upload_forms.uv("refused", "1.0", filename, data))
    assert_refused(reply, 400, sentence)
    assert filename in reply.reason
    assert py.get(f"/packages/{filename}").status == 404
    assert py.get("/simple/refused/").status == 404


def test_a_raw_body_must_match_its_path(py):
    filename, data = make_wheel("refused", "1.0")
    assert_refused(py.put(f"/other/1.0/{filename}", data), 400, "project")
    assert_refused(py.put(f"/refused/2.0/{filename}", data), 400, "does not belong to version 2.0")
    assert py.put(f"/-x-/1.0/{filename}", data).status == 404
    assert py.get("/simple/refused/").status == 404


def test_a_broken_form_is_refused(py):
    path = "/legacy/"
    whole = form_body(wheel_form())
    multipart = f"multipart/form-data; boundary={BOUNDARY}"
    assert_refused(py.post(path, whole[:-20], Content_Type=multipart), 400, "form is malformed")
    assert_refused(py.post(path, b"", Content_Type=multipart), 400, "form")
    assert_refused(py.post(path, whole, Content_Type="application/octet-stream"), 415, "multipart/form-data")
    assert_refused(py.post(path, whole), 415, "multipart/form-data")
    assert_refused(py.post(path, whole, Content_Type="multipart/form-data"), 400, "boundary")
    latin = form_body([("name", "x")]).replace(b"x\r\n", b"\xff\r\n")
    assert_refused(py.post(path, latin, Content_Type=multipart), 400, "not UTF-8")
    assert_refused(py.post_form(path, [("classifiers", "x")] * 1100), 413, "form is too large")


def test_user_text_in_a_reason_phrase_is_one_harmless_line(py):
    evil = "x\r\nSet-Cookie: a=b\r\n\r\n<script>\x1b[31m"
    for form in (wheel_form(filetype=evil), [*wheel_form()[:-1], ("content", "é" + "y" * 900 + ".exe", b"")]):
        reply = py.post_form("/legacy/", form)
        assert reply.status == 400
        assert "set-cookie" not in reply.headers
        assert len(reply.reason) <= 200
        assert "\x1b" not in reply.reason + reply.text


# Duplicates


def test_other_content_under_a_published_name_is_refused_as_twine_and_uv_expect(py):
    filename, data = make_wheel("duplicate", "1.0")
    assert py.post_form("/legacy/", upload_forms.twine("duplicate", "1.0", filename, data)).status == 200
    _, other = make_wheel("duplicate", "1.0", pad=10)
    for accept in (None, UV_ACCEPT):
        headers = {} if accept is None else {"Accept": accept}
        reply = py.post_form("/legacy/", upload_forms.twine("duplicate", "1.0", filename, other), **headers)
        assert_refused(reply, 400, "^File already exists")
        assert filename in reply.reason
        assert "was ever registered" not in reply.text
    raw = py.put(f"/duplicate/1.0/{filename}", other)
    assert_refused(raw, 400, "^File already exists")
    assert py.get(f"/packages/{filename}").body == data
    assert len(py.get("/simple/duplicate/", Accept=JSON).json["files"]) == 1


def test_a_second_sdist_of_a_version_is_refused(py):
    filename, data = make_sdist("one-sdist", "1.0")
    assert py.put(f"/one-sdist/1.0/{filename}", data).status == 201
    other, more = make_sdist("one-sdist", "1.0", ending=".zip")
    reply = py.put(f"/one-sdist/1.0/{other}", more)
    assert_refused(reply, 400, "only one source distribution")
    assert [file["filename"] for file in py.get("/simple/one-sdist/", Accept=JSON).json["files"]] == [filename]
    assert py.get(f"/packages/{other}").status == 404


# Who may not


def test_missing_and_wrong_credentials_get_a_challenge(py):
    for somebody in (py.as_user(), py.as_user("admin", "wrong"), py.as_user("__token__", "pkgr_c_nonsense")):
        reply = somebody.post_form("/legacy/", wheel_form())
        assert_refused(reply, 401, "authentication required|incorrect")
        assert reply.headers["www-authenticate"].startswith('Basic realm="')


def test_a_token_reaches_only_its_repositories_actions_and_packages(as_token):
    reader, writer, elsewhere = as_token("reader"), as_token("writer"), as_token("elsewhere")
    assert_refused(reader.post_form("/legacy/", wheel_form()), 403, "may not publish")
    assert_refused(writer.post_form("/legacy/", wheel_form()), 403, "may not publish 'refused'")
    assert_refused(elsewhere.post_form("/legacy/", wheel_form()), 403, "main/py")
    assert writer.post_form("/legacy/", wheel_form("team-tool")).status == 200
    filename, data = make_wheel("Team.Other", "1.0")
    assert writer.put(f"/Team.Other/1.0/{filename}", data).status == 201
    assert_refused(writer.put("/refused/1.0/refused-1.0-py3-none-any.whl", data), 403, "may not publish 'refused'")
    assert writer.get("/simple/team-tool/").status == 200
    # The limits of a token take nothing away from what anonymous callers read.
    assert writer.get("/simple/refused/").status == 404
    assert writer.get("/packages/refused-1.0-py3-none-any.whl").status == 404
    assert writer.delete(f"/packages/team-other/1.0/{filename}").status == 403
    assert writer.post("/pypi/team-other/1.0/yank").status == 403
    assert elsewhere.get("/simple/").status == 200
    assert reader.get("/simple/").status == 200


def test_a_file_that_its_token_may_not_publish_is_refused_before_it_is_stored(as_token):
    filename, data = make_wheel("not-the-teams", "1.0", pad=500_000)
    writer = as_token("writer")
    body = form_body(upload_forms.uv("not-the-teams", "1.0", filename, data))
    with writer.connect() as connection:
        content_type = f"multipart/form-data; boundary={BOUNDARY}"
        head = writer.head_lines("POST", "/legacy/", Content_Type=content_type, Content_Length=str(len(body)))
        connection.sendall(head + body[:20_000])  # the file's part has started
        assert_refused(read_reply(connection), 403, "may not publish 'not-the-teams'")


def test_uploading_to_the_index_is_answered_with_the_right_address(py, format_server):
    for path in ("/simple/", "/simple", "/simple/foo/", "/+simple/", "/+simple/foo/", "/legacy/+simple/"):
        reply = py.post_form(path, wheel_form())
        assert_refused(reply, 405, f"upload to {format_server.url}/repositories/main/py/legacy/")
        assert reply.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path",
    [
        "/upload",
        "/upload/",
        "/pypi/legacy/",
        "/pypi/simple/",
        "/api/v1/upload",
        "/packages/",
        "/refused",
        "/pypi/refused",
    ],
)
def test_a_form_at_an_address_that_takes_none_is_told_the_right_one(py, path):
    reply = py.post_form(path, wheel_form())
    assert_refused(reply, 400 if path.startswith("/api") else 404, f"upload to {py.url}/legacy/$")
    assert "upload to" not in py.get(path).reason


@pytest.mark.parametrize("path", ["/", "/pypi/", "/legacy/", "/simple/", "/repositories/main/"])
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_uploads_to_the_server_itself_are_told_where_repositories_are(format_server, method, path):
    reply = HttpClient(format_server.url).ask(method, path, b"x")
    assert reply.status == 404
    assert "the address of a repository is /repositories/<storage>/<repository>/" in reply.json["error"]


def test_a_repository_that_does_not_exist_is_not_found(py):
    nowhere = type(py)(py.url.replace("main/py", "main/nowhere"), py._auth)
    assert nowhere.post_form("/legacy/", wheel_form()).status == 404
    assert nowhere.get("/simple/").status == 404


# Before the body


def test_a_refused_client_that_waits_for_100_gets_its_answer_instead(py, as_token):
    filename, data = make_wheel("refused", "1.0")
    cases = (
        (py.as_user(), "/refused/1.0/" + filename, 401),
        (as_token("reader"), "/refused/1.0/" + filename, 403),
        (as_token("writer"), "/refused/1.0/" + filename, 403),
        (py, "/refused/1.0/refused.exe", 400),
        (py, "/refused/2.0/" + filename, 400),
        (py, "/simple/", 405),
    )
    for who, path, status in cases:
        with who.connect() as connection:
            head = who.head_lines("POST", path, Content_Length=str(len(data)), Expect="100-continue")
            connection.sendall(head)
            assert (path, read_reply(connection).status) == (path, status)


@pytest.mark.parametrize(
    ("path", "size"), [("/big/1.0/big-1.0.tar.gz", MAX_UPLOAD + 1), ("/legacy/", MAX_UPLOAD + 64 * 1024 * 1024)]
)
def test_an_announced_length_over_the_limit_is_refused_before_the_body(py, path, size):
    for expect in ({}, {"Expect": "100-continue"}):
        with py.connect() as connection:
            content_type = f"multipart/form-data; boundary={BOUNDARY}"
            connection.sendall(
                py.head_lines("POST", path, Content_Length=str(size), Content_Type=content_type, **expect)
            )
            assert_refused(read_reply(connection), 413, "larger than the limit of")


def test_an_allowed_upload_gets_100_continue(py):
    filename, data = make_wheel("invited", "1.0")
    with py.connect() as connection:
        head = py.head_lines("PUT", f"/invited/1.0/{filename}", Content_Length=str(len(data)), Expect="100-continue")
        connection.sendall(head)
        assert read_reply(connection, "PUT").status == 100
        connection.sendall(data)
        assert read_reply(connection, "PUT").status == 201


@pytest.mark.parametrize("who", ["nobody", "reader"])
def test_a_client_that_sends_the_whole_body_first_still_reads_the_refusal(py, as_token, who):
    import requests

    user = py.as_user() if who == "nobody" else as_token("reader")
    content_type = f"multipart/form-data; boundary={BOUNDARY}"
    data = form_body([("content", "refused-1.0.tar.gz", bytes(8 * 1024 * 1024))])
    headers = {"Content-Type": content_type, **basic(user._auth)}
    reply = requests.post(user.url + "/legacy/", data=data[: MAX_UPLOAD + 1000], headers=headers, timeout=TIMEOUT_S)
    assert reply.status_code == (401 if who == "nobody" else 403)
    assert reply.reason


def test_a_file_over_the_limit_is_refused_in_every_kind_of_upload(py):
    big = bytes(MAX_UPLOAD + 10)
    chunked = py.ask("PUT", "/big/1.0/big-1.0.tar.gz", iter([big]))
    assert_refused(chunked, 413, "larger than the limit of")
    form = upload_forms.uv("big", "1.0", "big-1.0.tar.gz", big)
    assert_refused(py.post_form("/legacy/", form), 413, "larger than the limit of")
    assert py.get("/packages/big-1.0.tar.gz").status == 404


def test_an_interrupted_upload_leaves_no_files(py, format_server):
    filename, data = make_wheel("left", "1.0", pad=300_000)
    for path, body in (
        (f"/left/1.0/{filename}", data),
        ("/legacy/", form_body(upload_forms.twine("left", "1.0", filename, data))),
    ):
        with py.connect() as connection:
            content_type = f"multipart/form-data; boundary={BOUNDARY}"
            head = py.head_lines("POST", path, Content_Length=str(len(body)), Content_Type=content_type)
            connection.sendall(head + body[: len(body) // 2])
            connection.shutdown(socket.SHUT_RDWR)
    assert py.get("/simple/left/").status == 404
    assert py.put(f"/left/1.0/{filename}", data).status == 201

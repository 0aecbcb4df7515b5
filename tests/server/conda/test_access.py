"""Who may read and upload, and what may be replaced."""

import hashlib

import pytest

from tests.support.conda_packages import make_conda

pytestmark = pytest.mark.server

ATTACHED = {"X-File-Name": "formed-1.0-py_0.conda"}


@pytest.fixture
def by_token(repository, token_texts):
    """Return a client of a repository with one of the tokens as its password."""
    return lambda name, token: repository(name).as_user("token", token_texts[token])


def form(data, **headers):
    """A form with the package as its part ``file``, as rattler-build sends it to a prefix server."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f'--b\r\nContent-Disposition: form-data; name="file"\r\n{lines}\r\n'
    return head.encode() + data + b"\r\n--b--\r\n"


def post_form(client, body, query=""):
    return client.post(f"/api/v1/upload/any{query}", body, Content_Type="multipart/form-data; boundary=b")


def test_a_private_channel_is_read_with_credentials_only(repository, by_token, push):
    private = repository("private")
    assert push("hidden", where=private).status == 201
    reader = by_token("private", "reader")
    for path in ("/noarch/repodata.json", "/noarch/hidden-1.0-py_0.conda", "/channeldata.json", "/notices.json"):
        assert private.as_user().get(path).status == 401
        assert reader.get(path).status == 200
    assert "private" in reader.get("/noarch/repodata.json").headers["cache-control"]


def test_an_upload_needs_credentials_and_a_permission(ch, push, by_token):
    assert push("refused", where=ch.as_user()).status == 401
    refused = push("refused", where=by_token("ch", "reader"))
    assert refused.status == 403
    assert refused.json["detail"] in refused.reason + refused.json["detail"]
    team = by_token("ch", "team")
    assert push("other", where=team).status == 403
    assert push("team-one", where=team).status == 201
    assert b'"refused-' not in ch.get("/noarch/repodata.json").body


def test_a_repository_may_want_tokens(repository, push, by_token):
    refused = push("demo", where=repository("by-token"))
    assert (refused.status, "token" in refused.json["detail"]) == (403, True)
    assert push("demo", where=by_token("by-token", "writer")).status == 201


def test_only_members_of_the_owning_project_upload(repository, push, api):
    name, password = "conda-dev", "correct horse battery"
    created = api.post_json("/users", {"username": name, "password": password}).json
    rights = {"default_repository_actions": ["read", "write"]}
    assert api.post_json(f"/users/{created['id']}/permissions", rights, "PUT").status == 200
    refused = push("owned", where=repository("members").as_user(name, password))
    assert (refused.status, "no project owns 'owned'" in refused.json["detail"]) == (403, True)
    assert push("owned", where=repository("members")).status == 201  # an admin


def test_the_same_bytes_are_taken_again_and_others_are_not(ch, push):
    assert [push("same").status for _ in range(2)] == [201, 200]
    changed = push("same", license="BSD")
    assert changed.status == 409
    assert "already exists" in changed.json["detail"]
    assert push("same", license="BSD", query="?force=true").status == 409  # the repository does not allow it
    assert ch.get("/noarch/repodata.json").json["packages.conda"]["same-1.0-py_0.conda"]["license"] == "MIT"


def test_a_file_is_replaced_where_the_repository_and_the_caller_may(repository, push, by_token):
    lax = repository("lax")
    assert push("soft", where=lax).status == 201
    assert push("soft", where=lax, license="BSD").status == 409
    no_right = push("soft", where=by_token("lax", "no-overwrite"), license="BSD", query="?force=true")
    assert no_right.status == 409
    assert push("soft", where=lax, license="BSD", query="?force=true").status == 201
    assert lax.get("/noarch/repodata.json").json["packages.conda"]["soft-1.0-py_0.conda"]["license"] == "BSD"


def test_quetz_and_prefix_forms_are_taken(ch):
    data = make_conda("quetzed")
    digest = hashlib.sha256(data).hexdigest()
    chunks = [data[:100], data[100:]]
    quetz = "/api/channels/any/upload/quetzed-1.0-py_0.conda"
    assert ch.ask("POST", f"{quetz}?force=false&sha256={digest}", chunks).status == 201
    formed = make_conda("formed")
    sha256 = {"X-File-SHA256": hashlib.sha256(formed).hexdigest()}
    assert post_form(ch, form(formed, **ATTACHED, **sha256)).status == 201
    assert {"quetzed-1.0-py_0.conda", "formed-1.0-py_0.conda"} <= ch.get("/noarch/repodata.json").json[
        "packages.conda"
    ].keys()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (form(b"", **{"X-File-Name": "a-1.conda"}), 400),
        (form(make_conda("formed"), **ATTACHED, **{"X-File-SHA256": "0" * 64}), 400),
        (form(make_conda("formed"), **ATTACHED, **{"X-File-SHA256": "zz"}), 400),
        (b"--b--\r\n", 400),
        (form(make_conda("formed"), **ATTACHED)[:-20], 400),
        (form(bytes(300_000), **ATTACHED), 413),
    ],
)
def test_malformed_and_large_forms_are_refused(ch, body, status):
    assert post_form(ch, body).status == status


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/noarch/broken-1.0-py_0.conda", b"no zip archive", 400),
        ("/noarch/broken-1.0-py_0.conda", b"", 400),
        ("/noarch/other-1.0-py_0.conda", make_conda("broken"), 400),
        ("/noarch/broken-1.0-py_0.conda?sha256=" + "0" * 64, make_conda("broken"), 400),
        ("/noarch/broken-1.0-py_0.conda?force=maybe", make_conda("broken"), 400),
        ("/noarch/Broken-1.0-py_0.conda", make_conda("broken"), 400),
        ("/noarch/broken-1.0-py_0.zip", make_conda("broken"), 400),
        ("/noarch/broken-1.0-py_0.conda", bytes(300_000), 413),
        ("/linux-128/broken-1.0-py_0.conda", make_conda("broken"), 405),
    ],
)
def test_what_is_no_package_is_refused_with_a_sentence(ch, path, body, status):
    reply = ch.put(path, body)
    assert (reply.status, reply.json["detail"] != "") == (status, True)
    assert b"broken" not in ch.get("/noarch/repodata.json").body


def test_a_deleted_name_is_not_published_again(ch, push, api):
    assert push("burned").status == 201
    assert api.delete("/package/main%2Fch/burned/versions/1.0").status == 200
    assert push("burned", license="BSD").status == 409


def test_a_yanked_version_is_in_no_document_until_it_is_restored(ch, push, api):
    assert push("yanked").status == 201
    version = "/package/main%2Fch/yanked/versions/1.0"
    assert api.post_json(f"{version}/yank", {"reason": "broken"}).status == 200
    assert b"yanked" not in ch.get("/noarch/repodata.json").body
    assert ch.get("/noarch/yanked-1.0-py_0.conda").status == 200  # for environments that have it
    assert api.post(f"{version}/unyank").status == 200
    assert b"yanked" in ch.get("/noarch/repodata.json").body


def test_the_api_shows_a_version_with_its_dependencies(push, api):
    documents = {"about.json": {"home": "https://demo.example/", "summary": "Shown"}}
    assert push("shown", depends=["python >=3.8"], documents=documents).status == 201
    version = api.get("/package/main%2Fch/shown/versions/1.0").json
    assert (version["license"], version["dependencies"]) == ("MIT", ["python >=3.8"])
    assert version["links"] == {"Homepage": "https://demo.example/"}
    assert [file["path"] for file in version["files"]] == ["noarch/shown-1.0-py_0.conda"]

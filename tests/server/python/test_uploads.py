"""Accepted uploads: every tool's form, every path, raw bodies, and the resulting pages."""

import hashlib
import json

import pytest

from tests.support import upload_forms
from tests.support.http_client import basic
from tests.support.python_packages import make_metadata, make_sdist, make_wheel
from tests.support.tarballs import make_tar_gz
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

JSON = "application/vnd.pypi.simple.v1+json"


def page(where, project):
    return where.get(f"/simple/{project}/", Accept=JSON).json


@pytest.mark.parametrize("tool", upload_forms.TOOLS)
@pytest.mark.parametrize("make", [make_wheel, make_sdist])
def test_the_form_of_every_tool_is_accepted(py, tool, make):
    project = f"by-{tool.replace('_', '-')}-{make.__name__.removeprefix('make_')}"
    filename, data = make(project, "1.0")
    reply = py.post_form("/legacy/", upload_forms.TOOLS[tool](project, "1.0", filename, data))
    assert (reply.status, reply.reason) == (200, "OK")
    [file] = page(py, project)["files"]
    assert file["filename"] == filename
    assert py.get(f"/packages/{filename}").body == data


@pytest.mark.parametrize("path", ["/", "", "/legacy/", "/legacy", "/pypi", "/pypi/", "/pkgindex/"])
def test_a_form_is_accepted_on_every_path_without_a_redirect(py, path):
    project = "at" + path.replace("/", "-s") + "-x"
    filename, data = make_wheel(project, "1.0")
    assert py.post_form(path, upload_forms.twine(project, "1.0", filename, data)).status == 200
    assert page(py, project)["versions"] == ["1.0"]


@pytest.mark.parametrize("path", ["/pypi/{}/upload/", "/pypi/{}/upload", "/pkgindex/{}/upload/", "/pkgindex/{}/upload"])
def test_a_form_at_a_projects_address_needs_no_action_but_the_right_project(py, path):
    project = "addressed" + str(len(path)) + "i" * path.count("k")
    filename, data = make_wheel(project, "1.0")
    form = upload_forms.replaced(upload_forms.twine(project, "1.0", filename, data), action=None)
    assert py.post_form(path.format("other"), form).status == 400
    assert py.post_form(path.format(project.upper()), form).status == 200
    assert page(py, project)["versions"] == ["1.0"]


def test_a_raw_body_is_accepted_by_put_and_post(py):
    for method, path in (("PUT", "/{}/{}/{}"), ("POST", "/{}/{}/{}"), ("PUT", "/packages/{}/{}/{}")):
        project = f"raw-{method.lower()}-{path.count('/')}"
        filename, data = make_wheel(project, "1.0")
        reply = py.ask(method, path.format(project, "1.0", filename), data)
        assert (method, reply.status, reply.text) == (method, 201, "stored\n")
        again = py.ask(method, path.format(project.upper(), "v1.0.0", filename), data)
        assert (again.status, again.text) == (200, "unchanged\n")


def test_a_raw_body_may_come_in_chunks(py):
    filename, data = make_wheel("in-chunks", "1.0", pad=200_000)
    pieces = [data[start : start + 10_000] for start in range(0, len(data), 10_000)]
    assert py.ask("PUT", f"/in-chunks/1.0/{filename}", iter(pieces)).status == 201
    assert py.get(f"/packages/{filename}").body == data


@pytest.mark.parametrize("name", ["simple", "packages", "pypi", "legacy", "pkgindex", "integrity", "json"])
def test_a_project_may_have_the_name_of_a_fixed_word(py, name):
    filename, data = make_wheel(name, "1.0")
    assert py.post_form("/legacy/", upload_forms.uv(name, "1.0", filename, data)).status == 200
    second, more = make_wheel(name, "1.1")
    assert py.put(f"/{name}/1.1/{second}", more).status == 201
    assert page(py, name)["versions"] == ["1.0", "1.1"]
    for path in (f"/packages/{name}/1.0/{filename}", f"/packages/{filename}", f"/simple/{name}/{filename}"):
        assert (path, py.get(path).body == data) == (path, True)
    assert py.get(f"/packages/{name}/1.0/{filename}.metadata").status == 200
    assert py.get(f"/pypi/{name}/json").json["info"]["version"] == "1.1"
    assert py.get(f"/simple/{name}/").status == 200
    assert "meta" in py.get("/simple/", Accept=JSON).json


def test_credentials_come_as_basic_token_or_bearer(py, as_token, token_texts):
    filename, data = make_wheel("team-credentials", "1.0")
    form = upload_forms.uv("team-credentials", "1.0", filename, data)
    assert as_token("writer").post_form("/legacy/", form).status == 200
    bearer = {"Authorization": f"Bearer {token_texts['writer']}"}
    assert py.as_user().post_form("/legacy/", form, **bearer).status == 200
    any_name = basic(("whoever", token_texts["writer"]))
    assert py.as_user().post_form("/legacy/", form, **any_name).status == 200


@pytest.mark.parametrize("tool", ["uv", "twine"])
def test_the_same_file_again_changes_nothing(py, tool):
    project = f"again-{tool}"
    filename, data = make_wheel(project, "1.0")
    form = upload_forms.TOOLS[tool](project, "1.0", filename, data)
    assert py.post_form("/legacy/", form).status == 200
    before = py.get(f"/simple/{project}/", Accept=JSON)
    assert py.post_form("/legacy/", form).status == 200
    after = py.get(f"/simple/{project}/", Accept=JSON)
    assert after.body == before.body
    assert after.headers["etag"] == before.headers["etag"]


def test_signature_and_provenance_accompany_a_file(py):
    filename, data = make_wheel("signed", "1.0")
    signature = b"-----BEGIN PGP SIGNATURE-----\n"
    form = upload_forms.uv("signed", "1.0", filename, data)
    assert py.post_form("/legacy/", [*form, ("gpg_signature", f"{filename}.asc", signature)]).status == 200
    [file] = page(py, "signed")["files"]
    assert file["gpg-sig"] is True
    address = f"/packages/signed/1.0/{filename}"
    assert file["provenance"] == f"../..{address}.provenance"
    assert py.get(f"{address}.asc").body == signature
    provenance = py.get(f"{address}.provenance")
    assert provenance.headers["content-type"] == "application/vnd.pypi.integrity.v1+json"
    [bundle] = provenance.json["attestation_bundles"]
    assert bundle["attestations"] == json.loads(upload_forms.attestations(filename, data))
    assert py.get(f"/integrity/signed/1.0/{filename}/provenance").body == provenance.body
    html = py.get("/simple/signed/").text
    assert 'data-gpg-sig="true"' in html
    assert f'data-provenance="../..{address}.provenance"' in html


def test_metadata_of_the_file_overrides_the_form(py):
    filename, data = make_wheel("hearsay", "1.0", requires_python=">=3.10", summary="from the file")
    form = upload_forms.replaced(
        upload_forms.twine("hearsay", "1.0", filename, data), requires_python=">=2", summary="from the form"
    )
    assert py.post_form("/legacy/", form).status == 200
    assert page(py, "hearsay")["files"][0]["requires-python"] == ">=3.10"
    assert py.get("/pypi/hearsay/json").json["info"]["summary"] == "from the file"


def test_announced_digests_are_stored(py):
    filename, data = make_wheel("digested", "1.0")
    assert py.post_form("/legacy/", upload_forms.twine("digested", "1.0", filename, data)).status == 200
    [file] = py.get("/pypi/digested/json").json["urls"]
    assert file["digests"] == {
        "md5": hashlib.md5(data).hexdigest(),
        "sha256": hashlib.sha256(data).hexdigest(),
        "blake2b_256": hashlib.blake2b(data, digest_size=32).hexdigest(),
    }
    assert file["md5_digest"] == file["digests"]["md5"]


def test_the_first_spelling_of_a_version_stays(py):
    filename, data = make_wheel("one-version", "1.0")
    assert py.put(f"/one-version/1.0/{filename}", data).status == 201
    other, more = make_sdist("one-version", "1.0.0")
    assert py.put(f"/one-version/1.0.0/{other}", more).status == 201
    told = page(py, "one-version")
    assert told["versions"] == ["1.0"]
    assert {file["url"] for file in told["files"]} == {
        f"../../packages/one-version/1.0/{name}" for name in (filename, other)
    }
    assert py.get(f"/packages/one-version/1.0.0/{other}").body == more


def test_a_version_is_shown_as_its_author_wrote_it_first(py):
    filename, data = make_wheel("as-written", "1.0rc1", metadata=make_metadata("as-written", "v1.0-RC.1"))
    assert py.put(f"/as-written/1.0rc1/{filename}", data).status == 201
    other, more = make_sdist("as-written", "1.0rc1")
    assert py.put(f"/as-written/1.0rc1/{other}", more).status == 201
    told = page(py, "as-written")
    assert told["versions"] == ["v1.0-RC.1"]
    assert {file["url"] for file in told["files"]} == {
        f"../../packages/as-written/v1.0-RC.1/{name}" for name in (filename, other)
    }
    assert py.get("/pypi/as-written/json").json["info"]["version"] == "v1.0-RC.1"
    for spelling in ("1.0rc1", "v1.0-RC.1", "1.0.0-c1"):
        assert py.get(f"/packages/as-written/{spelling}/{filename}").body == data
        assert py.get(f"/pypi/as-written/{spelling}/json").json["info"]["version"] == "v1.0-RC.1"


def test_a_spelling_that_is_too_long_for_a_path_is_normalised(py):
    name = "n" * 226
    filename, data = make_sdist(name, "1", metadata=make_metadata(name, "0" * 30 + "1"))
    assert py.put(f"/{name}/1/{filename}", data).status == 201
    assert page(py, name)["versions"] == ["1"]


@pytest.mark.parametrize(("field", "limit"), [("summary", 2**20), ("keywords", 2**20), ("description", 2**22)])
def test_a_text_field_of_the_form_has_a_length_limit(py, field, limit):
    filename, data = make_wheel(f"long-{field}", "1.0")
    form = [each for each in upload_forms.twine(f"long-{field}", "1.0", filename, data) if each[0] != field]
    for length, status in ((limit + 1, 413), (limit, 200)):
        reply = py.post_form("/legacy/", [(field, "x" * length), *form])
        assert reply.status == status, reply
        if status == 413:
            assert reply.reason == f"the form field '{field}' is longer than {limit} bytes"


def test_old_spellings_of_sdists_are_taken_and_refused_where_the_policy_says(repository):
    data = make_sdist("Old.Name", "1.0")[1]
    name = "Old.Name-1.0.tar.gz"
    data = make_tar_gz({"Old.Name-1.0/PKG-INFO": make_metadata("Old.Name", "1.0")})
    assert repository("py").put(f"/old-name/1.0/{name}", data).status == 201
    refused = repository("strict").put(f"/old-name/1.0/{name}", data)
    assert refused.status == 400
    assert "strict_filenames" in refused.reason


def test_a_file_with_other_content_replaces_the_old_one_if_the_policy_allows_it(repository):
    where = repository("overwritable")
    filename, first = make_wheel("replaced", "1.0", requires_python=">=3.8")
    form = upload_forms.uv("replaced", "1.0", filename, first)
    assert where.post_form("/legacy/", [*form, ("gpg_signature", "x.asc", b"signed")]).status == 200
    address = f"/packages/replaced/1.0/{filename}"
    assert where.get(address).headers["cache-control"] == "no-cache"
    before = page(where, "replaced")
    _, second = make_wheel("replaced", "1.0", requires_python=">=3.9", pad=10)
    assert where.post_form("/legacy/", upload_forms.twine("replaced", "1.0", filename, second)).status == 200
    assert where.get(address).body == second
    [file] = page(where, "replaced")["files"]
    assert file["requires-python"] == ">=3.9"
    assert file["hashes"] != before["files"][0]["hashes"]
    metadata = where.get(f"{address}.metadata").body
    assert file["core-metadata"] == {"sha256": hashlib.sha256(metadata).hexdigest()}
    assert b">=3.9" in metadata
    # The signature and provenance of the old file are not those of the new one.
    assert "gpg-sig" not in file
    assert "provenance" not in file
    assert where.get(f"{address}.asc").status == 404
    assert where.get(f"{address}.provenance").status == 404


def test_an_upload_with_a_big_file_and_one_with_none_share_a_connection(py):
    import http.client

    filename, data = make_wheel("kept-alive", "1.0", pad=100_000)
    connection = http.client.HTTPConnection(py.parts.hostname, py.parts.port, timeout=TIMEOUT_S)
    for _ in range(2):
        connection.request("PUT", py.target(f"/kept-alive/1.0/{filename}"), data, basic(py._auth))
        reply = connection.getresponse()
        assert reply.status in (200, 201)
        reply.read()
    connection.request("GET", py.target("/simple/kept-alive/"))
    assert connection.getresponse().status == 200
    connection.close()

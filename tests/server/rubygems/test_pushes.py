"""``gem push``: what is stored, and the texts of refusals, which are all that the client prints."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading

import pytest

from tests.server.rubygems.conftest import MAX_UPLOAD, SIGSTORE
from tests.support.gems import make_gem, make_gemspec, recorded
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.sigstore import ISSUER, FakeSigstore
from tests.support.tarballs import make_tar

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("alpha-1.0.0.gem", "alpha (1.0.0)"),
        ("Beta_x-0.2.0.pre1-x86_64-linux.gem", "Beta_x (0.2.0.pre1-x86_64-linux)"),
        ("signed-1.0.gem", "signed (1.0)"),
    ],
)
def test_gems_of_rubygems_are_stored_and_served(repository, file, name):
    where, data = repository("fresh"), recorded(file)
    first = where.post("/api/v1/gems", data)
    assert (first.status, first.text) == (200, f"Successfully registered gem: {name}")
    assert first.headers["content-type"] == "text/plain; charset=utf-8"
    again = where.post("/api/v1/gems", data)
    assert (again.status, again.text) == (200, f"Gem was already pushed: {name}")
    stored = where.get(f"/gems/{file}")
    assert stored.body == data
    assert stored.headers["content-type"] == "application/octet-stream"
    assert stored.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert where.get(f"/gems/{file}", Range="bytes=1-3").body == data[1:4]
    assert where.head(f"/gems/{file}").headers["content-length"] == str(len(data))
    quick = where.get(f"/quick/Marshal.4.8/{file.removesuffix('.gem')}.gemspec.rz")
    assert (quick.status, quick.body[:1]) == (200, b"\x78")


@pytest.mark.parametrize("path", ["/api/v1/gems", "//api/v1/gems", "//api///v1/gems/"])
def test_double_slashes_are_no_redirect(rb, path):
    data = make_gem(f"slashes{path.count('/')}", "1")
    assert rb.post(path, data).text.startswith("Successfully registered gem: ")


@pytest.mark.parametrize("path", ["", "/", "/gems", "/api/v1/gem", "/api/v1/gems/gems", "/gems/astray-1.gem", "/%zz"])
def test_pushes_to_other_addresses_are_told_the_host(rb, path):
    reply = rb.post(path, make_gem("astray", "1"))
    assert reply.status in (404, 405)
    assert reply.text.endswith(f"; the host to push to is {rb.url}")
    assert reply.reason == reply.text


def test_a_push_to_the_server_itself_is_told_where_repositories_are(rb, format_server):
    server = HttpClient(format_server.url)
    reply = server.post("/api/v1/gems", make_gem("astray", "1"), User_Agent="Ruby, RubyGems/3.3.15 x86_64-linux")
    assert reply.status == 404
    assert reply.text.endswith("; the address of a repository is /repositories/<storage>/<repository>/")


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain", None])
def test_the_declared_type_means_nothing(rb, content_type):
    name = "typed" + str(len(content_type or ""))
    headers = {} if content_type is None else {"Content-Type": content_type}
    assert rb.ask("POST", "/api/v1/gems", make_gem(name, "1"), headers).status == 200


def test_a_body_in_chunks_is_taken(rb):
    data = make_gem("chunked", "1")
    assert rb.ask("POST", "/api/v1/gems", (data[at : at + 500] for at in range(0, len(data), 500))).status == 200
    assert rb.get("/gems/chunked-1.gem").body == data


def test_a_form_with_attestations_is_taken(rb):
    data = make_gem("formed", "1")
    document = SIGSTORE.gem(data)
    attestations = ("attestations", document.decode())
    reply = rb.post_form("/api/v1/gems", [("gem", "formed-1.gem", data), attestations])
    assert (reply.status, reply.text) == (200, "Successfully registered gem: formed (1)")
    assert rb.get("/gems/formed-1.gem").body == data
    served = rb.get("/api/v1/attestations/formed-1.json")
    assert (served.body, served.headers["content-type"]) == (document, "application/json")
    assert rb.get("/gems/formed-1.gem.attestations").body == document
    again = rb.post_form("/api/v1/gems", [attestations, ("gem", "formed-1.gem", data)])
    assert again.text == (
        "Gem was already pushed: formed (1)\nIts attestations were not taken: they come with the first push."
    )
    assert rb.post_form("/api/v1/gems", [attestations]).text == "the form has no part named 'gem'"
    twice = [("gem", "a.gem", data), ("gem", "b.gem", data)]
    assert rb.post_form("/api/v1/gems", twice).status == 400


def test_attestations_that_are_not_verified_are_refused_with_their_gem(rb):
    data = make_gem("forged", "1")
    for document, status, why in (
        (SIGSTORE.gem(b"other bytes"), 422, "Attestation verification failed:\nits entry in the transparency log is"),
        (FakeSigstore().gem(data), 422, "Attestation verification failed:\nits entry is in a transparency log that"),
        (b'[{"mediaType": "x"}]', 422, "Attestation verification failed:\nthe bundle cannot be read"),
        (b"{}", 400, "the list of attestations is not what it should be"),
        (b"[" + b"{}," * 16 + b"{}]", 400, "the list of attestations is not what it should be"),
    ):
        reply = rb.post_form("/api/v1/gems", [("gem", "forged-1.gem", data), ("attestations", document.decode())])
        assert (reply.status, reply.text[: len(why)]) == (status, why)
    twice = [("attestations", "[{}]"), ("attestations", "[{}]"), ("gem", "forged-1.gem", data)]
    assert rb.post_form("/api/v1/gems", twice).status == 400
    assert rb.get("/gems/forged-1.gem").status == 404


def test_a_gem_without_attestations_has_an_empty_list_and_a_yanked_one_none(rb, push):
    assert push("bare", "1").status == 200
    assert rb.get("/api/v1/attestations/bare-1.json").body == b"[]"
    missing = rb.get("/api/v1/attestations/bare-2.json")
    assert (missing.status, missing.text) == (404, "This gem could not be found")
    data = make_gem("withdrawn", "1", platform="java")
    sent = [("gem", "withdrawn-1-java.gem", data), ("attestations", SIGSTORE.gem(data).decode())]
    assert rb.post_form("/api/v1/gems", sent).status == 200
    address, beside = "/api/v1/attestations/withdrawn-1-java.json", "/gems/withdrawn-1-java.gem.attestations"
    assert [rb.get(each).status for each in (address, beside)] == [200, 200]
    yank = "/api/v1/gems/yank?gem_name=withdrawn&version=1&platform=java"
    assert rb.ask("DELETE", yank).status == 200
    assert [rb.get(each).status for each in (address, beside)] == [404, 404]
    assert rb.ask("PUT", yank.replace("yank?", "unyank?")).status == 200
    assert [rb.get(each).status for each in (address, beside)] == [200, 200]


def test_who_signed_a_gem_is_shown_and_goes_with_it(rb, repository, format_server):
    data = make_gem("carried", "1")
    document = SIGSTORE.gem(data)
    rb.post_form("/api/v1/gems", [("gem", "carried-1.gem", data), ("attestations", document.decode())])
    api = HttpClient(f"{format_server.url}/api", (USER, PASSWORD))
    promoted = api.post_json("/package/main%2Frb/carried/versions/1/promote", {"to": "main/fresh"})
    assert promoted.status == 200, promoted.text
    assert repository("fresh").get("/api/v1/attestations/carried-1.json").body == document
    for where in ("rb", "fresh"):
        (found,) = api.get(f"/package/main%2F{where}/carried/versions/1/attestations").json["items"]
        assert (found["kind"], found["about"], found["verified"]) == ("Sigstore bundles", "gems/carried-1.gem", True)
        assert (found["source"], found["issuer"]) == ("https://forge.example/acme/widget", ISSUER)
        assert found["by"] == found["workflow"]


def test_other_bytes_of_a_published_version_are_refused(push):
    assert push("taken", "1.0").status == 200
    reply = push("taken", "1.0", extra="homepage: other\n")
    assert reply.status == 409
    assert reply.text.splitlines() == [
        "Repushing of gem versions is not allowed.",
        "Please bump the version number and push a new different release.",
        "See also `gem yank` if you want to unpublish the bad release.",
    ]


def test_a_version_that_ruby_takes_for_equal_is_refused(push, repository):
    assert push("equal", "1.0").status == 200
    reply = push("equal", "1.0.0")
    assert reply.status == 409
    assert "equal" not in reply.text.partition(":")[0]
    assert "version 1.0.0 is the same as 1.0, which is published" in reply.text
    assert push("equal", "1.0.0", platform="java").status == 200
    lax = repository("lax")
    assert push("equal", "1.0", lax).status == push("equal", "1.0.0", lax).status == 200


def test_names_that_people_mistake_for_each_other_are_refused(push, rb, repository):
    assert push("Spelt_alike", "1").status == 200
    case = push("spelt_alike", "1")
    assert (case.status, case.text.splitlines()[0]) == (409, "Unable to change case of gem name with indexed versions")
    dash = push("Spelt-alike", "1")
    assert dash.status == 409
    assert "differs from the published gem Spelt_alike only in" in dash.text
    assert rb.ask("DELETE", "/api/v1/gems/yank", "gem_name=Spelt_alike&version=1").status == 200
    assert push("spelt_alike", "1").status == 200
    lax = repository("lax")
    assert push("A_b", "1", lax).status == push("a-b", "1", lax).status == push("a_b", "1", lax).status == 200


def test_one_file_name_belongs_to_one_gem(push, rb):
    assert push("dashed", "1-2".replace("-2", ""), platform="2-java").status == 200
    reply = push("dashed-1", "2", platform="java")
    assert (reply.status, reply.text) == (409, "dashed-1-2-java.gem is published as a file of another gem")
    assert rb.ask("DELETE", "/api/v1/gems/yank", "gem_name=dashed&version=1&platform=2-java").status == 200
    assert push("dashed-1", "2", platform="java").text.startswith("A yanked version already exists (dashed-1-2-java).")


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"", 400, "the body must be a gem, and it is empty"),
        (b"no tar" * 200, 422, "Cannot process this gem.\n"),
        (make_gem()[:700], 422, "Cannot process this gem.\n"),
        (make_tar([("data.tar.gz", gzip.compress(b""))]), 422, "Cannot process this gem.\n"),
        (make_gem("a b"), 422, "There was a problem saving your gem: name 'a b' must"),
        (make_gem("a.gem"), 422, "There was a problem saving your gem: name 'a.gem' must"),
        (make_gem(version="1-x"), 422, "There was a problem saving your gem: version '1-x' must"),
        (make_gem(platform="a/b"), 422, "There was a problem saving your gem: platform 'a/b' must"),
        (make_gem(extra="files: !ruby/object:Kernel {}\n"), 422, "Cannot process this gem.\n"),
    ],
)
def test_what_is_no_gem_is_refused_in_text(rb, body, status, text):
    reply = rb.post("/api/v1/gems", body)
    assert reply.status == status
    assert reply.text.startswith(text)
    assert "Traceback" not in reply.text


def test_gems_that_are_too_large_are_refused_from_the_head(rb):
    connection = rb.connect()
    with connection:
        connection.sendall(rb.head_lines("POST", "/api/v1/gems", Content_Length=str(MAX_UPLOAD + 1)))
        assert connection.recv(12) == b"HTTP/1.1 413"
    assert rb.ask("POST", "/api/v1/gems", iter([bytes(MAX_UPLOAD + 1)])).status == 413
    assert rb.post_form("/api/v1/gems", [("gem", "a.gem", bytes(MAX_UPLOAD + 1))]).status == 413


def test_of_parallel_pushes_of_one_version_exactly_one_is_registered(push):
    replies = []

    def run(number):
        replies.append(push("raced", "1.0", extra=f"homepage: number {number}\n"))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(reply.status for reply in replies) == [200] + [409] * 7


def test_a_gem_is_found_by_the_management_api(push, api):
    needs = {"rack": [(">=", "1.0"), ("<", "3")]}
    assert (
        push("managed", "2.0", dependencies=needs, extra="licenses: [MIT]\nhomepage: https://m.example\n").status == 200
    )
    found = api.get("/package/main%2Frb/managed/versions/2.0")
    assert found.status == 200, found
    record = found.json
    assert record["version"] == "2.0"
    assert [file["path"] for file in record["files"]] == [
        "gems/managed-2.0.gem",
        "quick/Marshal.4.8/managed-2.0.gemspec.rz",
    ]
    assert record["license"] == "MIT"
    assert record["links"] == {"Homepage": "https://m.example"}
    assert record["dependencies"] == ["rack (< 3, >= 1.0)"]
    digest = hashlib.sha256(
        make_gem("managed", "2.0", dependencies=needs, extra="licenses: [MIT]\nhomepage: https://m.example\n")
    )
    assert record["files"][0]["digests"]["sha256"] == digest.hexdigest()


def test_only_members_of_the_owning_project_push(repository, push, api):
    where = repository("members")
    name, password = "pusher", "correct horse battery"
    created = api.post_json("/users", {"username": name, "password": password})
    assert created.status == 201, created
    granted = api.ask(
        "PUT", f"/users/{created.json['id']}/permissions", json.dumps({"default_repository_actions": ["read", "write"]})
    )
    assert granted.status == 200, granted
    as_pusher = where.as_user(name, password)
    refused = push("guarded", "1.0", as_pusher)
    assert refused.status == 403
    assert "no project owns 'guarded'" in refused.text
    assert push("guarded", "1.0", where).status == 200  # an admin


def test_a_password_is_not_enough_where_the_rule_says_so(repository, push, token_texts):
    where = repository("by-token")
    reply = push("tokened", "1.0", where)
    assert (reply.status, reply.text) == (403, "pushes to this repository need an access token, not a password")
    assert push("tokened", "1.0", where.as_user("token", token_texts["all"])).status == 200


def test_metadata_that_a_gem_may_have_is_kept(push, api):
    assert (
        push("noted", "1.0", extra="metadata: {source_code_uri: 'https://s.example'}\nemail: [a@x.example]\n").status
        == 200
    )
    meta = api.get("/package/main%2Frb/noted/versions/1.0").json["metadata"]
    assert meta["metadata"] == {"source_code_uri": "https://s.example"}
    assert meta["email"] == ["a@x.example"]


def test_a_push_to_another_address_is_refused(rb):
    reply = rb.post("/gems/alpha-1.0.0.gem", make_gem())
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
    assert rb.ask("PUT", "/api/v1/gems", make_gem()).status == 405
    assert make_gemspec()
    assert HttpClient(rb.url).post("/other", b"").status == 404

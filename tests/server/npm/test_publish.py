"""Publish requests of each client, their results and refusals."""

import base64
import gzip
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.server.npm.conftest import MAX_UPLOAD
from tests.support.http_client import read_reply
from tests.support.npm_packages import CLIENTS, make_bundle, make_manifest, make_publish, make_tarball
from tests.support.python_index import PASSWORD, USER
from tests.support.tarballs import make_tar_gz

pytestmark = pytest.mark.server


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ["plain-{}", "@publish/{}"])
def test_every_client_can_publish(npm, publish, client, name):
    name = name.format(client)
    reply = publish(name, client=client)
    assert (reply.json["ok"], reply.json["success"], reply.json["id"]) == (True, True, name)
    data = make_tarball(name, "1.0.0")
    version = npm.get(f"/{name}").json["versions"]["1.0.0"]
    assert version["_id"] == f"{name}@1.0.0"
    assert version["_npmUser"]["name"] == "admin"
    dist = version["dist"]
    assert dist["shasum"] == hashlib.sha1(data).hexdigest()
    assert dist["integrity"] == "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    assert dist["fileCount"] == 2
    assert not {"_resolved", "_from", "_integrity", "integrity", "shasum", "readme"} & version.keys()
    assert npm.get(f"/{name}").json["readme"] == f"# {name}\n"
    bare = name.rpartition("/")[2]
    assert npm.get(f"/{name}/-/{bare}-1.0.0.tgz").body == data


@pytest.mark.parametrize("path", ["/", "/package/literal", "/package/literal/1.2.0", "/literal"])
def test_the_literal_addresses_take_publishes(npm, path):
    version = {"/": "1.0.0", "/package/literal": "1.1.0", "/package/literal/1.2.0": "1.2.0", "/literal": "1.3.0"}[path]
    assert npm.put(path, make_publish("literal", version)).status == 201
    assert npm.get(f"/literal/{version}").status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/npm/astray"),
        ("PUT", "/npm/@astray%2fx"),
        ("PUT", "//astray"),
        ("PUT", "/-/astray"),
        ("PUT", "/-/npm/astray"),
        ("POST", "/"),
        ("POST", "/astray"),
        ("POST", "/-/package/astray"),
    ],
)
def test_publishes_at_other_addresses_are_told_the_registry(npm, method, path):
    reply = npm.ask(method, path, make_publish("astray", "1.0.0"))
    assert reply.status in (400, 404, 405)
    assert reply.json["error"].endswith(f"; the registry to publish to is {npm.url}/")
    assert npm.get("/astray").status == 404


@pytest.mark.parametrize("name", ["@scope/_x", "@scope/-x", "@_team/x", "@-team/-rev"])
def test_a_scoped_name_may_begin_with_a_line_or_dash(npm, publish, name):
    assert publish(name).status == 201
    data = make_tarball(name, "1.0.0")
    tarball = npm.get(f"/{name.replace('/', '%2f')}").json["versions"]["1.0.0"]["dist"]["tarball"]
    for path in (tarball.removeprefix(npm.url), f"/{name}/-/{name.rpartition('/')[2]}-1.0.0.tgz"):
        assert npm.get(path).body == data
    assert npm.get(f"/-/package/{name}/dist-tags").json == {"latest": "1.0.0"}


@pytest.mark.parametrize(
    ("where", "access", "notice"),
    [
        ("npm", "restricted", "the package is public, as main/npm is: its visibility decides"),
        ("npm", "private", "the package is public, as main/npm is: its visibility decides"),
        ("npm", "public", None),
        ("private", "restricted", None),
        ("private", "public", None),  # the repository is stricter than the manifest
    ],
)
def test_the_visibility_of_the_repository_is_that_of_its_packages(repository, where, access, notice):
    name = f"@kept/{where}-{access}"  # yarn 4 sends restricted for each scoped package
    reply = repository(where).put(f"/{name}", make_publish(name, "1.0.0", access=access))
    assert (reply.status, reply.headers.get("npm-notice")) == (201, notice)
    assert repository(where).get(f"/{name}").status == 200


def test_a_body_may_come_in_pieces_and_compressed(npm):
    body = make_publish("pieces", "1.0.0", client="yarn4")
    assert npm.ask("PUT", "/pieces", [body[at : at + 7] for at in range(0, len(body), 7)]).status == 201
    packed = gzip.compress(make_publish("pieces", "1.1.0"))
    assert npm.put("/pieces", packed, Content_Encoding="gzip").status == 201
    assert npm.put("/pieces", packed[:-9], Content_Encoding="gzip").status == 400
    assert npm.put("/pieces", packed, Content_Encoding="br").status == 415


def test_the_first_version_is_latest_whatever_its_tag(npm, publish):
    publish("tagged", "1.0.0-beta.1", tag="beta")
    assert npm.get("/tagged").json["dist-tags"] == {"beta": "1.0.0-beta.1", "latest": "1.0.0-beta.1"}
    publish("tagged", "1.0.0-beta.2", tag="beta")
    assert npm.get("/tagged").json["dist-tags"] == {"beta": "1.0.0-beta.2", "latest": "1.0.0-beta.1"}
    publish("tagged", "1.0.0")
    assert npm.get("/tagged").json["dist-tags"]["latest"] == "1.0.0"


def test_no_tag_means_latest(npm):
    body = json.loads(make_publish("untagged", "1.0.0"))
    del body["dist-tags"]
    assert npm.put("/untagged", json.dumps(body).encode()).status == 201
    assert npm.get("/untagged").json["dist-tags"] == {"latest": "1.0.0"}


def test_a_version_is_published_once(npm, publish):
    publish("once", "1.0.0")
    for body in (make_publish("once", "1.0.0"), make_publish("once", "1.0.0", description="other")):
        reply = npm.put("/once", body)
        assert reply.status == 403
        assert reply.json["error"] == "You cannot publish over the previously published versions: 1.0.0."


def test_build_metadata_is_left_out(npm, publish):
    # npm asks so before it publishes: stored versions have no build metadata.
    publish("built", "1.0.0+a", tag="made")
    document = npm.get("/built").json
    assert (list(document["versions"]), document["dist-tags"]["made"]) == (["1.0.0"], "1.0.0")
    assert npm.get("/built/1.0.0").json["_id"] == "built@1.0.0"
    assert npm.get("/built/-/built-1.0.0.tgz").status == 200
    assert npm.put("/built", make_publish("built", "1.0.0+b")).status == 403


def test_an_unpublished_version_cannot_be_published_again(npm, publish, repository):
    for where, expected in ((npm, 403), (repository("reusable"), 201)):
        for version in ("1.0.0", "1.1.0+x"):
            publish("gone", version, where=where)
            rev = where.get("/gone?write=true").json["_rev"]
            assert where.ask("DELETE", f"/gone/-rev/{rev}").status == 200
            assert where.get("/gone").status == 404
            for spelled in (version, version.partition("+")[0], version.partition("+")[0] + "+other"):
                assert where.put("/gone", make_publish("gone", spelled)).status == expected, (where.url, spelled)
                if expected == 201:
                    break
            if expected == 201:
                rev = where.get("/gone?write=true").json["_rev"]
                where.ask("DELETE", f"/gone/-rev/{rev}")


def test_versions_published_together_are_all_there(npm):
    def put(index):
        return npm.put("/crowd", make_publish("crowd", f"1.0.{index}", client=CLIENTS[index % len(CLIENTS)])).status

    with ThreadPoolExecutor(32) as pool:
        assert set(pool.map(put, range(32))) == {201}
    document = npm.get("/crowd").json
    assert sorted(document["versions"]) == sorted(f"1.0.{index}" for index in range(32))
    assert list(document["versions"]) == [f"1.0.{index}" for index in range(32)]


def test_of_two_publishes_of_one_version_one_succeeds(npm):
    with ThreadPoolExecutor(8) as pool:
        bodies = [make_publish("race", "1.0.0", description=f"number {index}") for index in range(8)]
        statuses = sorted(pool.map(lambda body: npm.put("/race", body).status, bodies))
    assert statuses == [201] + [403] * 7


def attachment(document):
    return next(iter(document["_attachments"].values()))


def bad_length(document):
    attachment(document)["length"] = 1


def bad_base64(document):
    attachment(document)["data"] = "!!!!"


def two_versions(document):
    document["versions"]["2.0.0"] = document["versions"]["1.0.0"]


def no_versions(document):
    del document["versions"]


def other_name(document):
    document["name"] = "somebody-else"


def other_version(document):
    document["versions"]["1.0.0"]["version"] = "1.0.1"


def other_integrity(document):
    document["versions"]["1.0.0"]["dist"]["integrity"] = "sha512-" + base64.b64encode(b"x" * 64).decode()


def other_shasum(document):
    document["versions"]["1.0.0"]["dist"]["shasum"] = "0" * 40


def private(document):
    document["versions"]["1.0.0"]["private"] = True


def tag_is_range(document):
    document["dist-tags"] = {"1.x": "1.0.0"}


def tag_is_proto(document):
    document["dist-tags"] = {"__proto__": "1.0.0"}


def second_tarball(document):
    document["_attachments"]["other-1.0.0.tgz"] = attachment(document)


def misnamed_tarball(document):
    document["_attachments"] = {"../../x.tgz": attachment(document)}


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (bad_length, "bytes long"),
        (bad_base64, "base64"),
        (two_versions, "one version"),
        (no_versions, "one version"),
        (other_name, "somebody-else"),
        (other_version, "1.0.1"),
        (other_integrity, "integrity mismatch"),
        (other_shasum, "integrity mismatch"),
        (private, "private"),
        (tag_is_range, "invalid tag"),
        (tag_is_proto, "invalid tag"),
        (second_tarball, "one tarball"),
        (misnamed_tarball, "one tarball"),
    ],
)
def test_a_document_that_is_wrong_is_refused_with_the_reason(npm, spoil, told):
    document = json.loads(make_publish("wrong", "1.0.0"))
    spoil(document)
    reply = npm.put("/wrong", json.dumps(document).encode())
    assert reply.status == 400
    assert told in reply.json["error"]
    assert npm.get("/wrong").status == 404


@pytest.mark.parametrize("name", ["Upper", ".dot", "_under", "node_modules", "favicon.ico", "fs", "a" * 215])
def test_names_that_break_the_rules_are_refused(npm, name):
    for path in (f"/{name}", "/"):
        assert npm.put(path, make_publish(name, "1.0.0")).status == 400


@pytest.mark.parametrize("version", ["1.0", "1", "latest", "01.0.0", "1.0.0-01"])
def test_invalid_versions_are_refused(npm, version):
    reply = npm.put("/versions", make_publish("versions", version))
    assert reply.status == 400
    assert "invalid version" in reply.json["error"]


@pytest.mark.parametrize(
    ("tarball", "told"),
    [
        (b"not a tarball", "gzip"),
        (make_tarball("inside", "1.0.0")[:-20], "inside-1.0.0.tgz"),
        (make_tar_gz({"package/index.js": b""}), "package.json"),
        (make_tarball("somebody-else", "1.0.0"), "somebody-else"),
        (make_tarball("inside", "2.0.0"), "2.0.0"),
        (make_tar_gz({"package/package.json": b"{"}), "package.json"),
    ],
)
def test_a_malformed_or_wrong_tarball_is_refused(npm, tarball, told):
    reply = npm.put("/inside", make_publish("inside", "1.0.0", tarball=tarball))
    assert reply.status == 400
    assert told in reply.json["error"]


def test_the_manifest_in_the_tarball_wins(npm, repository):
    inside = make_manifest("confused", "1.0.0", scripts={"postinstall": "node steal.js"}, dependencies={"a": "1"})
    body = make_publish(
        "confused", "1.0.0", tarball=make_tarball("confused", "1.0.0", manifest=inside), dependencies={"b": "2"}
    )
    assert npm.put("/confused", body).status == 201
    version = npm.get("/confused").json["versions"]["1.0.0"]
    assert version["dependencies"] == {"a": "1"}
    assert version["scripts"] == {"postinstall": "node steal.js"}
    assert version["hasInstallScript"] is True
    refused = repository("careful").put("/confused", body)
    assert refused.status == 400
    assert "dependencies" in refused.json["error"]
    assert repository("careful").put("/honest", make_publish("honest", "1.0.0", dependencies={"a": "1"})).status == 201


def test_an_unauthorized_publish_is_refused_before_the_body(npm, as_token):
    body = make_publish("forbidden", "1.0.0")
    anonymous = npm.as_user().put("/forbidden", body)
    assert (anonymous.status, anonymous.headers["www-authenticate"]) == (401, 'Bearer, Basic realm="pkgrepo"')
    reader = as_token("reader").put("/forbidden", body)
    assert reader.status == 403
    assert reader.json["error"].startswith('You do not have permission to publish "forbidden".')
    assert as_token("elsewhere").put("/forbidden", body).status == 403
    connection = npm.connect()
    connection.sendall(as_token("reader").head_lines("PUT", "/forbidden", Content_Length="1000000"))
    assert read_reply(connection, "PUT").status == 403  # before any byte of the body is sent
    connection.close()


def test_a_token_for_a_scope_publishes_in_it_only(as_token):
    where = as_token("scoped")
    assert where.put("/@team%2fx", make_publish("@team/x", "1.0.0")).status == 201
    assert where.put("/@other%2fx", make_publish("@other/x", "1.0.0")).status == 403
    assert where.put("/", make_publish("@team/x", "1.1.0")).status == 201
    assert where.put("/", make_publish("@other/x", "1.0.0")).status == 403
    assert where.get("/@other%2fx").status == 404


def test_a_too_large_upload_is_refused_by_its_announced_length(npm):
    connection = npm.connect()
    connection.sendall(npm.head_lines("PUT", "/large", Content_Length=str(40 * 1024 * 1024)))
    assert read_reply(connection, "PUT").status == 413
    connection.close()
    body = make_publish("large", "1.0.0", tarball=make_tarball("large", "1.0.0", pad=MAX_UPLOAD))
    assert npm.ask("PUT", "/large", [body]).status == 413
    assert npm.get("/large").status == 404


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"a":1,"a":2}', b'{"versions":{}}', b"\xff"])
def test_a_body_that_is_no_document_is_refused(npm, publish, body):
    if npm.get("/document").status == 404:
        publish("document")
    reply = npm.put("/document", body)
    assert reply.status in (400, 201), reply
    assert npm.get("/document").status == 200
    assert (reply.status == 201) == (body == b'{"versions":{}}')


def test_provenance_is_stored_and_served(npm, publish):
    data = make_tarball("@prov/x", "1.0.0")
    bundle = make_bundle("@prov/x", "1.0.0", data)
    publish("@prov/x", bundle=bundle)
    told = npm.get("/@prov%2fx").json["versions"]["1.0.0"]["dist"]["attestations"]
    assert told == {
        "url": f"{npm.url}/-/npm/v1/attestations/@prov/x@1.0.0",
        "provenance": {"predicateType": "https://slsa.dev/provenance/v1"},
    }
    for path in ("/-/npm/v1/attestations/@prov/x@1.0.0", "/-/npm/v1/attestations/@prov%2fx@1.0.0"):
        served = npm.get(path).json["attestations"]
        assert served == [{"predicateType": "https://slsa.dev/provenance/v1", "bundle": json.loads(bundle)}]


@pytest.mark.parametrize(
    ("bundle", "told"),
    [
        (make_bundle("prov", "1.0.0", b"other"), "another tarball"),
        (make_bundle("prov", "1.0.1", make_tarball("prov", "1.0.0")), "'pkg:npm/prov@1.0.1', not prov@1.0.0"),
        (make_bundle("@prov/prov", "1.0.0", make_tarball("prov", "1.0.0")), "not prov@1.0.0"),
        (make_bundle("prov", "1.0.0", b"", subject=[]), "not prov@1.0.0"),
        (make_bundle("prov", "1.0.0", b"", subject=[{"name": "pkg:npm/prov@1.0.0"}]), "another tarball"),
        (make_bundle("prov", "1.0.0", b"", predicateType=None), "is none"),
        ("{}", "is none"),
        ("[]", "is none"),
        ("", "is none"),
        ('{"dsseEnvelope": {"payload": "!", "signatures": [{"sig": ""}]}}', "is none"),
        ('{"dsseEnvelope": {"payload": "/w==", "signatures": [{"sig": ""}]}}', "is none"),
        ('{"dsseEnvelope": {"payload": "e30=", "signatures": []}}', "no signature"),
    ],
)
def test_provenance_of_something_else_is_refused(npm, bundle, told):
    reply = npm.put("/prov", make_publish("prov", "1.0.0", bundle=bundle))
    assert reply.status == 400
    assert "provenance bundle" in reply.json["error"]
    assert told in reply.json["error"]
    assert npm.get("/prov").status == 404


def test_a_permission_revoked_during_an_upload_prevents_the_publish(npm):
    login = npm.as_user().post_json("/-/user/org.couchdb.user:admin", {"name": USER, "password": PASSWORD}, "PUT")
    token = login.json["token"]
    body = make_publish("late", "1.0.0")
    connection = npm.connect()
    head = npm.as_user().head_lines(
        "PUT", "/late", Content_Length=str(len(body)), Authorization=f"Bearer {token}", Expect="100-continue"
    )
    connection.sendall(head)
    assert read_reply(connection, "PUT").status == 100  # the head was accepted
    connection.sendall(body[:100])
    assert npm.ask("DELETE", f"/-/user/token/{token}").status == 200
    connection.sendall(body[100:])
    assert read_reply(connection, "PUT").status == 401
    connection.close()
    assert npm.get("/late").status == 404


def test_a_disconnected_client_publishes_nothing(npm):
    body = make_publish("left", "1.0.0")
    connection = npm.connect()
    connection.sendall(npm.head_lines("PUT", "/left", Content_Length=str(len(body))) + body[:-50])
    connection.close()
    assert npm.put("/left", body).status == 201

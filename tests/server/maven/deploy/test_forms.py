"""The forms in which bundles arrive: bodies, multipart forms, the portal; and what is none of them."""

import pytest

from tests.support.http_client import BOUNDARY, basic, form_body, read_reply
from tests.support.maven_bundles import (
    JSON,
    SIGNATURE,
    WAIT,
    ZIP,
    artifact,
    deploy,
    make_zip,
    served,
    two,
    wait_for_end,
)
from tests.support.timeouts import polled

pytestmark = pytest.mark.server


def test_requirements_of_the_repository_are_checked(repository):
    where = repository("signed")
    members = artifact("com.example", "signed", "1.0")
    reply = deploy(where, members)
    assert reply.status == 400
    assert sorted(reply.json["errors"]) == sorted(members)
    jar = next(path for path in members if path.endswith(".jar"))
    whole = {**members, jar.replace(".jar", "-sources.jar"): b"sources"}
    whole |= {f"{path}.asc": SIGNATURE for path in whole}
    assert deploy(where, whole).status == 201
    assert where.get(f"/{jar}.asc").body == SIGNATURE


def test_a_form_with_the_field_bundle_is_taken(mvn):
    members = two("form")
    reply = mvn.post_form(WAIT, [("ignored", "x"), ("bundle", "b.zip", make_zip(members)), ("more", "y")])
    assert reply.status == 201, reply
    assert served(mvn, members) == {200}
    for fields in ([("other", "b.zip", b"x")], [("bundle", "b", b"x"), ("bundle", "b", b"x")], []):
        assert mvn.post_form(WAIT, fields).status == 400


def test_the_portal_of_the_public_registry_is_spoken(mvn):
    members = two("portal")
    api = "/api/v1/publisher"
    user, secret = "admin", "correct horse battery"
    bearer = {"Authorization": basic((user, secret))["Authorization"].replace("Basic", "Bearer")}
    form = [("bundle", "central-bundle.zip", make_zip(members))]
    body = mvn.as_user()
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    reply = body.ask(
        "POST",
        f"{api}/upload?name=n&publishingType=USER_MANAGED",
        form_body(form),
        {**bearer, "Content-Type": kind},
    )
    assert reply.status == 201, reply
    uid = reply.text

    def status():
        return body.ask("POST", f"{api}/status?id={uid}", b"", bearer).json

    polled(lambda: status()["deploymentState"] not in ("PENDING", "VALIDATING"))
    assert (status()["deploymentState"], status()["deploymentName"]) == ("VALIDATED", "n")
    assert body.ask("POST", f"{api}/deployment/{uid}", b"", bearer).status == 204
    assert status()["purls"] == [
        "pkg:maven/com.example/portal-one@1.0",
        "pkg:maven/com.example.sub/portal-two@1.0",
    ]
    assert served(mvn, members) == {200}
    second = mvn.post_form(f"{api}/upload?publishingType=USER_MANAGED", form).text
    wait_for_end(mvn, second, "VALIDATED")
    assert mvn.delete(f"{api}/deployment/{second}").status == 204
    assert mvn.delete(f"{api}/deployment/{second}").status == 404
    assert mvn.post(f"{api}/status?id=").status == 404
    assert mvn.post(f"{api}/status").status == 404


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/deploy", {"Content-Type": "text/plain"}, 415),
        ("/deploy", {"Content-Type": "application/zip", "Content-Encoding": "gzip"}, 415),
        ("/deploy?publishing_type=SOON", ZIP, 400),
        ("/deploy?name=" + "n" * 201, ZIP, 400),
        ("/deploy?name=a%0Ab", ZIP, 400),
        ("/deploy", {**ZIP, "Content-Length": str(3 * 1024 * 1024)}, 413),
    ],
)
def test_a_request_that_cannot_be_a_bundle_is_refused_before_its_body(mvn, path, headers, status):
    with mvn.connect() as connection:
        fields = {"Content-Length": "10", **headers, "Expect": "100-continue"}
        connection.sendall(mvn.head_lines("POST", path, **fields))
        reply = read_reply(connection)
    assert reply.status == status


@pytest.mark.parametrize("body", [b"", b"x" * 100, b"PK\x03\x04" + bytes(1000), b"\x1f\x8b" + b"x" * 100])
def test_a_body_that_is_no_archive_fails_with_a_sentence(mvn, body):
    reply = mvn.ask("POST", WAIT, body, JSON)
    assert (reply.status, reply.json["state"]) == (400, "FAILED")
    assert list(reply.json["errors"]) == [""]
    assert "the" in reply.reason


def test_a_failed_bundle_is_told_in_text_too(mvn):
    reply = mvn.ask("POST", WAIT, make_zip({"README": b"x"}), ZIP)
    assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (400, "text/plain")
    assert reply.text.startswith("README: this is no path of an artifact's file")


def test_a_body_in_chunks_is_taken_and_one_that_ends_early_leaves_nothing(mvn):
    members = two("chunks")
    data = make_zip(members)
    pieces = [data[at : at + 100] for at in range(0, len(data), 100)]
    assert mvn.ask("POST", WAIT, iter(pieces), JSON).status == 201
    with mvn.connect() as connection:
        connection.sendall(mvn.head_lines("POST", WAIT, Content_Length="1000", Content_Type="application/zip") + b"PK")
    lost = two("lost")
    with mvn.connect() as connection:
        whole = make_zip(lost)
        head = mvn.head_lines("POST", WAIT, Content_Length=str(len(whole)), Content_Type="application/zip")
        connection.sendall(head + whole[:-1])
    assert deploy(mvn, two("after-lost")).status == 201
    assert served(mvn, lost) == {404}


def test_a_bundle_that_has_arrived_is_published_although_its_client_leaves(mvn):
    members = two("left-alone")
    data = make_zip(members)
    with mvn.connect() as connection:
        fields = {"Content_Length": str(len(data)), "Content_Type": "application/zip", "Expect": "100-continue"}
        connection.sendall(mvn.head_lines("POST", WAIT, **fields))
        assert read_reply(connection).status == 100  # the caller is known by now, and the body awaited
        connection.sendall(data)
    for _ in range(1000):
        if served(mvn, members) == {200}:
            break
    else:
        pytest.fail("it was not published")

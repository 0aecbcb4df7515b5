"""PGP signatures in deployments to a repository that trusts a key are valid ones by that key."""

import pytest
from pysequoia import SignatureMode, Tsk, sign

from tests.support.http_client import HttpClient
from tests.support.maven_bundles import artifact, make_zip
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server

KEY, STRANGER = Tsk.generate("Ada <ada@example.com>"), Tsk.generate("Eve <eve@example.com>")
JSON = {"Content-Type": "application/zip", "Accept": "application/json"}
REFUSED = "this is no valid signature of the file by a key that the repository trusts"


@pytest.fixture(scope="module")
def trusting(format_server):
    """Make the repository "trusting"."""
    api = HttpClient(f"{format_server.url}/api", (USER, PASSWORD))
    deploy = {"signatures": True, "trusted_keys": [str(KEY.extract_certificate())]}
    config = {"type": "Hosted", "deploy": deploy}
    repository = {"name": "trusting", "storage": "main", "format": "maven", "visibility": "public", "config": config}
    reply = api.post_json("/repository", repository)
    assert reply.status == 201, reply
    config["deploy"]["trusted_keys"].append(str(STRANGER))
    refused = api.post_json("/repository", {**repository, "name": "other", "config": config})
    assert (refused.status, "private key" in refused.text) == (422, True)


def signed(members, key, **other):
    """The files with their signatures by a key; those of ``other`` names are signatures of other bytes."""
    return members | {
        f"{path}.asc": sign(key.signer(), other.get(path[-3:], content), mode=SignatureMode.DETACHED)
        for path, content in members.items()
    }


def test_a_bundle_is_published_if_its_signatures_are_by_a_trusted_key(trusting, repository):
    where, members = repository("trusting"), artifact("com.example", "trusted", "1.0")
    for wrong in (signed(members, STRANGER), signed(members, KEY, jar=b"other", pom=b"other")):
        reply = where.ask("POST", "/deploy?wait=true", make_zip(wrong), JSON)
        assert (reply.status, reply.json["state"]) == (400, "FAILED")
        assert reply.json["errors"] == {f"{path}.asc": [REFUSED] for path in members}
        assert {where.get(f"/{path}").status for path in wrong} == {404}
    assert where.ask("POST", "/deploy?wait=true", make_zip(signed(members, KEY)), JSON).status == 201


def test_a_session_is_published_if_its_signatures_are_by_a_trusted_key(trusting, repository):
    where = repository("trusting")
    members = {path.rpartition("/")[2]: body for path, body in artifact("com.example", "told", "1.0").items()}
    for key, status in ((STRANGER, 400), (KEY, 200)):
        whole = signed(members, key)
        body = {"group_id": "com.example", "artifact_id": "told", "version": "1.0", "name": "n"}
        uid = where.post_json("/deploy", {**body, "files": [{"file_name": each} for each in whole]}).json["deploy_id"]
        for name, content in whole.items():
            assert where.put(f"/deploy/{uid}/{name}", content).status == 201
        reply = where.post(f"/deploy/{uid}/publish")
        assert (reply.status, REFUSED in reply.text) == (status, status == 400)
        assert where.delete(f"/deploy/{uid}").status == (204 if status == 400 else 409)

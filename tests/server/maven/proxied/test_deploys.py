"""Bundles for a virtual repository go to its target; proxies take none."""

import pytest

from tests.support.maven_bundles import artifact, make_zip

pytestmark = pytest.mark.server

ZIP = {"Content-Type": "application/zip", "Accept": "application/json"}


def test_a_bundle_for_a_virtual_repository_is_published_in_its_target(at):
    members = artifact("com.virtual", "app", "1.0")
    begun = at("all").ask("POST", "/deploy?wait=true&publishing_type=USER_MANAGED", make_zip(members), ZIP)
    assert begun.json["state"] == "VALIDATED"
    uid = begun.json["deployment_id"]
    assert at("all").get(f"/deploy/{uid}").json == at("own").get(f"/deploy/{uid}").json
    assert at("all").post(f"/deploy/{uid}/publish").status == 200
    for path, content in members.items():
        assert at("own").get(f"/{path}").body == content
        assert at("all").get(f"/{path}").body == content


@pytest.mark.parametrize("name", ["mirror", "readable"])
def test_a_repository_without_target_takes_no_bundle(at, name):
    reply = at(name).ask("POST", "/deploy", make_zip(artifact("com.virtual", "none", "1.0")), ZIP)
    assert reply.status == 405
    assert at(name).get("/deploy/00000000-0000-0000-0000-000000000000").status == 404

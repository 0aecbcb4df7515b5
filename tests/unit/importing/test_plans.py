"""What a plan says of addresses is about repositories that it makes."""

from __future__ import annotations

import pytest

from pkgrepo.importing.plans import Plan, plan_nexus


def test_a_connector_of_what_is_left_out_is_no_host_here() -> None:
    group = {"format": "docker", "type": "group", "group": {"memberNames": ["gone"]}, "docker": {"httpPort": 8083}}
    hosted = {"name": "images", "format": "docker", "type": "hosted", "docker": {"httpPort": 8082}}
    plan = plan_nexus("https://nexus.corp.example", [{"name": "empty", **group}, hosted], Plan("main", "private"))
    assert [each["name"] for each in plan.repositories] == ["images"]
    assert plan.hosts == {"nexus.corp.example:8082": "main/images"}
    assert any(each.startswith("empty is left out") for each in plan.notes)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://[x", "cannot be used"),
        ("https://h.example/a b", "cannot be used"),
        ("http:///x", "cannot be used"),
        ("https://ann:s3cret@h.example/", "has credentials"),
        ("", "has no address"),
    ],
    ids=["bracket", "space", "no-host", "credentials", "empty"],
)
def test_a_proxy_whose_address_cannot_be_used_is_left_out_alone(address: str, why: str) -> None:
    remote = {"name": "far", "format": "npm", "type": "proxy", "proxy": {"remoteUrl": address}}
    hosted = {"name": "near", "format": "npm", "type": "hosted"}
    plan = plan_nexus("https://nexus.corp.example", [remote, hosted], Plan("main", "private"))
    assert [each["name"] for each in plan.repositories] == ["near"]
    assert [each for each in plan.notes if each.startswith("far is left out") and why in each]
    assert not any("s3cret" in each for each in plan.notes)

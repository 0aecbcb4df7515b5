"""What a plan says of addresses is about repositories that it makes."""

from __future__ import annotations

from pkgrepo.importing.plans import Plan, plan_nexus


def test_a_connector_of_what_is_left_out_is_no_host_here() -> None:
    group = {"format": "docker", "type": "group", "group": {"memberNames": ["gone"]}, "docker": {"httpPort": 8083}}
    hosted = {"name": "images", "format": "docker", "type": "hosted", "docker": {"httpPort": 8082}}
    plan = plan_nexus("https://nexus.corp.example", [{"name": "empty", **group}, hosted], Plan("main", "private"))
    assert [each["name"] for each in plan.repositories] == ["images"]
    assert plan.hosts == {"nexus.corp.example:8082": "main/images"}
    assert any(each.startswith("empty is left out") for each in plan.notes)

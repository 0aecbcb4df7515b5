"""Groups and accounts of a plan give nobody more than the other server did, and no name becomes something else."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.importing.plan_rights import plan_artifactory_rights, plan_nexus_rights
from pkgrepo.importing.plans import Plan


@pytest.fixture
def plan() -> Plan:
    kinds = {"local": "Hosted", "remote": "Proxy"}
    repositories = [{"name": name, "format": "npm", "config": {"type": kind}} for name, kind in kinds.items()]
    return Plan("main", "private", repositories)


def permission(actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "p", "repo": {"repositories": ["local"], "actions": actions, **more}}


def grants(plan: Plan) -> dict[str, list[str]]:
    return {each["name"]: each["grants"][0]["actions"] for each in plan.groups}


def test_who_manages_a_permission_may_not_change_the_repository(plan: Plan) -> None:
    plan_artifactory_rights([permission({"groups": {"leads": ["read", "manage"]}, "users": {"bob": ["manage"]}})], plan)
    assert grants(plan) == {"leads": ["read"]}
    assert not plan.commands
    assert [each for each in plan.notes if "manage" in each and "leads" in each]
    assert [each for each in plan.notes if "manage" in each and "bob" in each]


@pytest.mark.parametrize(
    ("patterns", "open_"),
    [
        ({"include-patterns": "com/**"}, False),
        ({"exclude-patterns": "com/**"}, False),
        ({"include-patterns": ["com/**"]}, False),
        ({"include-patterns": {"a": "b"}}, False),
        ({"include-patterns": ["**"], "exclude-patterns": [""]}, True),
        ({"include-patterns": ["**", "com/**"], "exclude-patterns": []}, True),
        ({"include-patterns": "**", "exclude-patterns": ""}, True),
        ({}, True),
    ],
    ids=["text", "excluded-text", "list", "object", "empty-excluded", "all-and-more", "texts", "none"],
)
def test_a_permission_that_is_limited_to_paths_in_any_form_is_left_out(
    plan: Plan, patterns: dict[str, Any], open_: bool
) -> None:
    plan_artifactory_rights([permission({"groups": {"team": ["read"]}}, **patterns)], plan)
    assert grants(plan) == ({"team": ["read"]} if open_ else {})
    assert any("limited to paths" in each for each in plan.notes) != open_


def test_names_that_no_user_can_have_are_in_no_command(plan: Plan) -> None:
    names = ["--config=/tmp/x", "-h", "jane doe", "x", "a\nb", "jane.doe@corp.example"]
    users = [{"userId": each, "status": "active", "roles": ["nx-admin"]} for each in names]
    plan_nexus_rights([], users, plan)
    plan_artifactory_rights([permission({"users": {each: ["read"] for each in (*names, "anonymous")}})], plan)
    assert not plan.commands
    assert not any("user edit" in each for each in plan.notes)
    for each in (*names, "anonymous"):
        assert any(each in note for note in plan.notes), each


def test_accounts_that_cannot_log_in_there_are_not_made_here(plan: Plan) -> None:
    users = [{"userId": f"user-{each}", "status": each} for each in ("disabled", "locked", "active", "changepassword")]
    plan_nexus_rights([], users, plan)
    assert [each[2] for each in plan.commands] == ["user-active", "user-changepassword"]


def test_names_of_roles_that_differ_only_by_case_are_one_group_here(plan: Plan) -> None:
    reading, writing = ([f"nx-repository-view-npm-local-{each}"] for each in ("read", "add"))
    roles = [{"id": "team", "privileges": reading}, {"id": "Team", "privileges": writing}]
    plan_nexus_rights(roles, [{"userId": "bob", "status": "active", "roles": ["team", "Team"]}], plan)
    assert grants(plan) == {"team": ["read"]}
    assert [each for each in plan.commands if each[0] == "group"] == [["group", "add", "team", "bob"]]
    assert any(each.startswith("Team is no group here") for each in plan.notes)


@pytest.mark.parametrize(
    "answer", [{}, {"id": None, "userId": 7}, {"id": "", "userId": ""}], ids=["none", "others", "empty"]
)
def test_roles_and_users_without_an_id_are_refused(plan: Plan, answer: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        plan_nexus_rights([answer], [], plan)
    with pytest.raises(Invalid):
        plan_nexus_rights([], [{"status": "active", **answer}], plan)

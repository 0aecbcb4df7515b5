"""Publishers by commands."""

from __future__ import annotations

import pytest

from tests.support.command_line import Program

pytestmark = pytest.mark.server


def test_publishers_are_added_listed_and_removed(admin: Program) -> None:
    assert "github" in admin("publisher", "issuers")
    given = ("--issuer", "github", "--source", "acme/widget", "--file", "release.yml", "--environment", "release")
    added = admin("publisher", "add", "main/node", *given, "--packages", "acme-*", "--action", "stage")
    assert "workflow_ref=acme/widget/.github/workflows/release.yml@**" in added
    of_package = ("main/node", "@acme/new")
    admin("publisher", "add", *of_package, "--issuer", "github", "--claim", "repository_owner_id=12")
    [own] = admin.json("publisher", "list", *of_package)
    assert (own["package"], own["claims"]) == ("@acme/new", {"repository_owner_id": "12"})
    assert "acme-*" in admin("publisher", "list", "main/node")
    assert "is not written as NAME=PATTERN" in admin.refused(
        2, "publisher", "add", *of_package, "--issuer", "github", "--claim", "x"
    )
    refused = admin.refused(2, "publisher", "add", "main/node", "--issuer", "github", "--claim", "repository=acme*/x")
    assert "everybody has pipelines at" in refused
    for each in admin.json("publisher", "list", "main/node"):
        admin("publisher", "remove", "main/node", "--id", each["id"], "--yes")
    assert admin.json("publisher", "list", "main/node") == []


def test_publishers_of_a_project(admin: Program) -> None:
    admin("project", "create", "trusting")
    place = "project:trusting"
    admin("publisher", "add", place, "--issuer", "github", "--source", "acme/*")
    [found] = admin.json("publisher", "list", place)
    assert found["claims"] == {"repository": "acme/*"}
    assert "no publishers of single packages" in admin.refused(2, "publisher", "list", place, "x")
    admin("publisher", "remove", place, "--id", found["id"], "--yes")
    assert admin.json("publisher", "list", place) == []

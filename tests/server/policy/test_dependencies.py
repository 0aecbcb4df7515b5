"""New dependencies of what is published here."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.format_repositories import World
from tests.support.npm_packages import make_publish

pytestmark = pytest.mark.server


def test_the_versions_in_the_same_repository_tell_how_old_a_dependency_is(world: World) -> None:
    rule: dict[str, Any] = {"name": "young needs", "match": {"differs": ["young_dependency"]}}
    made = world.api.post_json(
        "/repository",
        {"name": "npm-young", "storage": "main", "format": "npm", "config": {"policy": {"rules": [rule]}}},
    )
    assert made.status == 201, made.text
    client = world.at("npm-young")
    for name, version, needs in (
        ("needed", "1.0.0", {}),
        ("demo", "1.0.0", {}),
        ("demo", "1.0.1", {"needed": "1"}),
        ("demo", "1.0.2", {"elsewhere": "1"}),
    ):
        assert client.put(f"/{name}", make_publish(name, version, dependencies=needs)).status in (200, 201)
    said = {each: client.get(f"/demo/-/demo-{each}.tgz") for each in ("1.0.0", "1.0.1", "1.0.2")}
    assert [each.status for each in said.values()] == [200, 403, 403]
    assert "new young_dependency needed since 1.0.0" in said["1.0.1"].text
    assert "how it differs from the version before is not known" in said["1.0.2"].text

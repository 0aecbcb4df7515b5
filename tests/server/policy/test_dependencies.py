"""New dependencies of what is published here."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.format_repositories import World
from tests.support.npm_packages import make_publish
from tests.support.python_packages import make_wheel
from tests.support.timeouts import polled
from tests.support.upload_forms import twine

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


def test_of_a_conda_package_made_of_a_wheel_what_is_not_known_of_the_wheel_is_missing(world: World) -> None:
    """Nothing here has the package that the wheel newly needs."""
    rule: dict[str, Any] = {"name": "young needs", "match": {"differs": ["young_dependency"]}}
    config = {"conda": {"from_wheels": True}, "policy": {"rules": [rule]}}
    made = world.api.post_json(
        "/repository", {"name": "python-young", "storage": "main", "format": "python", "config": config}
    )
    assert made.status == 201, made.text
    client = world.at("python-young")
    for version, needs in (("1.0.0", []), ("1.0.1", [("Requires-Dist", "elsewhere")])):
        answer = client.post_form("/", twine("demo", version, *make_wheel("demo", version, fields=needs)))
        assert answer.status == 200, answer.text
    wheels = [client.get(f"/packages/demo/{each}/demo-{each}-py3-none-any.whl") for each in ("1.0.0", "1.0.1")]
    assert [each.status for each in wheels] == [200, 403]
    polled(lambda: "demo-1.0.0-py_0.conda" in client.get("/conda/noarch/repodata.json").text)
    made_of = [client.get(f"/conda/noarch/demo-{each}-py_0.conda") for each in ("1.0.0", "1.0.1")]
    assert [each.status for each in made_of] == [200, 403]
    assert "how it differs from the version before is not known" in made_of[1].text

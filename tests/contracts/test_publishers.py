"""Publishers of projects, and the tokens of pipelines, on every engine of the catalog."""

from datetime import UTC, datetime

import pytest

from pkgrepo.auth.permissions.publishers import entry_id
from pkgrepo.errors import Conflict, NotFound
from pkgrepo.model import Pipeline, TokenLimits
from pkgrepo.oidc.publishers import add_project_publisher, remove_project_publisher
from pkgrepo.repositories.configuration import PipelinePublisher
from pkgrepo.storage.catalog.people import projects
from pkgrepo.storage.catalog.people.pipelines import add_pipeline_token
from pkgrepo.storage.catalog.people.tokens import find_token
from pkgrepo.storage.catalog.people.users import identity_serial

PIPELINE = Pipeline("a pipeline", "forge", "sub", frozenset({"a"}), {"iss": "https://forge.example"}, frozenset({"b"}))


async def test_publishers_of_projects_are_added_and_removed(catalog):
    project = await catalog.write(projects.add_project, key="acme", now_ms=1)
    assert await catalog.look(projects.projects_with_publishers) == []
    before = await catalog.look(identity_serial)
    given = PipelinePublisher(issuer="forge", claims={"repository": "acme/*", "contexts": ["a", "b"]})
    added = await catalog.write(add_project_publisher, project.id, given, now_ms=2)
    assert added["claims"] == {"repository": "acme/*", "contexts": ["a", "b"]}
    assert await catalog.look(identity_serial) > before, "decisions that are kept are made again"
    [found] = await catalog.look(projects.projects_with_publishers)
    assert (found.key, found.publishers) == ("acme", (added,))
    with pytest.raises(Conflict):
        await catalog.write(add_project_publisher, project.id, given, now_ms=3)
    with pytest.raises(NotFound):
        await catalog.write(remove_project_publisher, project.id, "0" * 16, now_ms=3)
    assert await catalog.write(remove_project_publisher, project.id, entry_id(added), now_ms=4) == added
    assert await catalog.look(projects.projects_with_publishers) == []


async def test_a_token_of_a_pipeline_is_added_once_and_keeps_what_it_was_recognised_as(catalog):
    limits = TokenLimits(expires_at=datetime.fromtimestamp(900, UTC))
    given = {"identity_expires_ms": 9000, "shown": "x", "limits": limits, "pipeline": PIPELINE, "created_from": ""}
    added = await catalog.write(add_pipeline_token, digest=b"1" * 32, hash=b"1" * 32, now_ms=1, **given)
    assert await catalog.write(add_pipeline_token, digest=b"1" * 32, hash=b"2" * 32, now_ms=1, **given) is None
    found = await catalog.look(find_token, added.id)
    assert found.pipeline == PIPELINE
    assert found.pipeline.claims == PIPELINE.claims

"""Every kind of rule on every road by which something goes out, in every format and type of repository."""

from __future__ import annotations

import json
from typing import Any

import pytest
import pytest_twisted

from tests.support.matrix.checks import check_cell, check_malware, documents_of
from tests.support.matrix.kinds import KNOWN_MALWARE, RULES, RuleKind
from tests.support.matrix.specimens import BAD, GOOD, NPM, READ, SHARD, Specimen
from tests.support.matrix.world import KINDS, MatrixWorld, matrix_world

CELLS = [
    pytest.param(specimen, kind, rule, id=f"{rule.name}-{specimen.id}-{kind}")
    for specimen in READ
    for kind in KINDS
    for rule in RULES
    if kind in specimen.kinds and rule.applies(specimen)
]


@pytest_twisted.async_yield_fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    async with matrix_world(tmp_path_factory.mktemp("matrix")) as made:
        yield made


@pytest.mark.parametrize(("specimen", "kind", "rule"), CELLS)
async def test_a_rule_holds_on_every_road(world: MatrixWorld, specimen: Specimen, kind: str, rule: RuleKind) -> None:
    await check_cell(world, specimen, kind, rule)


@pytest_twisted.async_yield_fixture(scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server that blocks known malware by itself."""
    async with matrix_world(tmp_path_factory.mktemp("guarded"), block_malware=True) as made:
        yield made


@pytest.mark.parametrize(
    ("specimen", "kind"),
    [
        pytest.param(specimen, kind, id=f"{specimen.id}-{kind}")
        for specimen in READ
        for kind in KINDS
        if kind in specimen.kinds and KNOWN_MALWARE.applies(specimen)
    ],
)
async def test_known_malware_is_refused_on_every_road_without_a_rule(
    guarded: MatrixWorld, specimen: Specimen, kind: str
) -> None:
    await check_malware(guarded, specimen, kind, KNOWN_MALWARE)


@pytest.mark.parametrize(
    ("specimen", "kind"),
    [
        pytest.param(specimen, kind, id=f"{specimen.id}-{kind}")
        for specimen in READ
        for kind in ("hosted", "cold", "virtual")
        if kind in specimen.kinds
    ],
)
async def test_a_token_for_other_packages_reads_what_anonymous_callers_read(
    world: MatrixWorld, specimen: Specimen, kind: str
) -> None:
    name = await world.repository(specimen, kind)
    limits = [{"repository": "main/*", "actions": ["read", "write"], "packages": ["something-else"]}]
    token = await world.stack.token(repositories=limits)
    every = [path for item in specimen.items for path in item.paths]
    every += [path for path in documents_of(specimen, kind) if not path.startswith(SHARD)]
    for path in every:
        anonymous = await world.ask(name, "GET", path)
        limited = await world.ask(name, "GET", path, who=token)
        assert (path, limited.status) == (path, anonymous.status)


@pytest.mark.parametrize("rule", [each for each in RULES if each.applies(NPM)], ids=lambda rule: rule.name)
async def test_unpublishing_one_version_of_npm_removes_none_that_a_rule_hides(
    world: MatrixWorld, rule: RuleKind
) -> None:
    """npm reads the document, removes the version from it, and writes it back."""
    name = await world.repository(NPM, "hosted")
    await world.set_rules(name, {"name": "no", "reason": "because", "match": rule.match(NPM, "hosted")})
    document = (await world.ask(name, "GET", "/@acme%2fevil-tool?write=true", who="admin")).json
    del document["versions"][GOOD]
    document["dist-tags"] = {"latest": BAD}
    path = f"/@acme%2fevil-tool/-rev/{document['_rev']}"
    reply = await world.ask(name, "PUT", path, json.dumps(document).encode(), "application/json", who="admin")
    assert reply.status in (200, 201), reply.body
    await world.set_rules(name)
    left = (await world.ask(name, "GET", "/@acme%2fevil-tool")).json
    assert [*left["versions"]] == [BAD]

"""
What a drill says of a version is what a proxy does with it: for each incident the files of the versions that did harm
are asked for, two minutes after the first of them was published.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from pkgrepo.proxy.drill.drills import stand_in
from pkgrepo.proxy.drill.player import Played, Player
from pkgrepo.proxy.incidents.corpus import incidents
from pkgrepo.proxy.incidents.shapes import Incident, Published
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.storage.catalog.server.policy import StoredPolicy
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess
from tests.support.upstreams.incidents import AGO, FORMATS, IncidentUpstream

pytestmark = pytest.mark.server


def first(incident: Incident) -> tuple[str, Published]:
    """The version that did harm first, with its package; of several packages of that which others come through."""
    found = [(each.name, one) for each in incident.packages if not each.through for one in each.harmful]
    return min(found, key=lambda pair: pair[1].at)


@pytest.fixture(scope="module")
def rules(server: ServerProcess) -> dict[str, list[PolicyRule]]:
    """The rules of each repository."""
    api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
    found = {}
    for name in (f"{name}-{kind}" for name in ("npm", "python", "ruby") for kind in ("suggested", "later")):
        stored = api.get(f"/repository/main%2F{name}/config/policy").json["rules"]
        found[name] = msgspec.convert(stored, list[PolicyRule])
    return found


def drilled(incident: Incident, rules: list[PolicyRule]) -> Iterator[Played]:
    format_ = FORMATS[incident.format]
    assert format_.proxied is not None
    seat = stand_in(format_, StoredPolicy(), rules)
    yield from Player(format=format_, proxied=format_.proxied, flat=seat.flat).play(incident)


@pytest.mark.parametrize("kind", ["suggested", "later"])
@pytest.mark.parametrize("incident", incidents(), ids=lambda each: each.name)
def test_a_proxy_refuses_what_a_drill_says_by_the_rule_that_it_names(
    server: ServerProcess,
    upstreams: dict[str, IncidentUpstream],
    rules: dict[str, list[PolicyRule]],
    incident: Incident,
    kind: str,
) -> None:
    package, asked = first(incident)
    upstream = upstreams[incident.format]
    upstream.happen(incident.name, package, asked.version)
    at_ms = asked.at_ms + round(AGO.total_seconds() * 1000)
    assert upstream.format.proxied is not None
    assert upstream.format.proxied.drilled is not None
    repository = f"{incident.format}-{kind}"
    played = {(each.package, each.version): each for each in drilled(incident, rules[repository])}
    for affected in incident.packages:
        for each in affected.harmful:
            if not each.at <= asked.at < (each.removed or asked.at):
                continue
            (span,) = [one for one in played[affected.name, each.version].spans if one.from_ms <= at_ms < one.until_ms]
            made = upstream.format.proxied.drilled.make(affected.name, each)
            reply = HttpClient(f"{server.url}/repositories/main/{repository}").get(f"/{made.path}")
            where = f"{affected.name} {each.version} in {repository}: {reply.status} {reply.body[:300]!r}"
            if span.by is None:
                assert (reply.status, reply.body) == (200, made.content), where
            else:
                assert reply.status == 403, where
                assert f"the rule {span.by.rule!r}" in reply.text, where
                assert ("quarantine" in reply.text) == (span.by.action == "quarantine"), where

"""Documents that a list of their upstream names: gems, by the sums in the list of versions."""

from __future__ import annotations

from pkgrepo.formats.rubygems.proxied.upstream import info_question, versions_question
from pkgrepo.proxy.trace import Trace
from tests.support.proxy_world import ProxyWorld
from tests.support.upstreams.rubygems import RubyUpstream


async def test_fresh_document_is_asked_for_again_when_a_later_list_names_other_bytes(world: ProxyWorld) -> None:
    up = world.started(RubyUpstream())
    up.add("left")
    up.add("right")
    proxy = await world.proxy("gems", up, format="ruby")
    for name in ("left", "right"):
        await world.documents.get(proxy, info_question(name), Trace())
    await world.settle()
    world.clock.advance(30)
    up.add("left", "1.1.0")
    await world.documents.get(proxy, versions_question(), Trace())
    await world.settle()
    for name in ("left", "right"):
        await world.documents.get(proxy, info_question(name), Trace())
    assert (up.count("/info/left"), up.count("/info/right")) == (2, 1)

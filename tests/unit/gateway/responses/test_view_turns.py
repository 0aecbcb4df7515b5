"""Views of the past are made one after the other, and those that would wait too long are refused."""

import pytest
from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.gateway.responses.view_turns import MOST_DOCUMENTS, MOST_WAITING, ViewTurns
from pkgrepo.http.responses import Refusal
from pkgrepo.repositories.past import view_of
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository


@pytest.fixture
def live():
    return MemoryCatalog().do(add_repository, "Py")


class Scene:
    """Lists that are being made until ``end``."""

    def __init__(self):
        self.clock = Clock()
        self.turns = ViewTurns(self.clock)
        self.running = []

    def ask(self, repository, package=None):
        async def work():
            self.running.append(Deferred())
            return await self.running[-1]

        return Deferred.fromCoroutine(self.turns.make(repository, work, package=package))

    def end(self, outcome):
        self.running.pop(0).callback(outcome)
        self.clock.advance(0)


def test_a_view_waits_for_another_one_and_present_lists_for_none(live):
    scene = Scene()
    views = [scene.ask(view_of(live, f"2020-01-01T00:00:0{each}Z", NOW)) for each in range(3)]
    assert len(scene.running) == 1
    present = [scene.ask(live) for _ in range(3)]
    assert len(scene.running) == 4
    for name in ("view 0", "present 0", "present 1", "present 2", "view 1", "view 2"):
        scene.end(name)
    assert [each.result for each in views] == ["view 0", "view 1", "view 2"]
    assert [each.result for each in present] == ["present 0", "present 1", "present 2"]


def test_too_many_views_of_a_repository_are_refused_and_others_are_not(live):
    scene, other = Scene(), evolve(live, id=live.id + 1)
    asked = [scene.ask(view_of(live, "2020-01-01", NOW)) for _ in range(MOST_WAITING + 2)]
    refused = asked.pop().result
    assert (refused.type, refused.value.status, refused.value.code) == (Refusal, 503, "busy")
    another = scene.ask(view_of(other, "2020-01-01", NOW))
    assert asked.pop().result.check(Refusal)  # the newest of the longest queue makes room
    assert not another.called
    for each in range(MOST_WAITING + 1):
        scene.end(each)
    assert another.result == 1 or another.result == 2  # repositories take turns
    assert all(each.called for each in asked)


def test_a_package_at_ever_new_times_delays_another_one_by_one_document(live):
    scene = Scene()
    many = [
        scene.ask(view_of(live, f"2020-01-01T00:{each // 60:02}:{each % 60:02}Z", NOW), "large")
        for each in range(MOST_DOCUMENTS + 1)
    ]
    assert len(scene.running) == 1
    whole = scene.ask(view_of(live, "2020-01-01", NOW))
    assert len(scene.running) == 2, "lists have turns of their own"
    other = scene.ask(view_of(live, "2020-01-01", NOW), "small")
    refused = many.pop().result
    assert (refused.type, refused.value.status) == (Refusal, 503), "the newest of the longest queue makes room"
    present = scene.ask(live, "large")
    assert len(scene.running) == 3, "present documents wait for none"
    for name in ("large", "list", "present"):
        scene.end(name)
    assert (many[0].result, whole.result, present.result) == ("large", "list", "present")
    scene.end("next")
    scene.end("next but one")
    assert other.called


def test_a_list_that_fails_ends_its_turn(live):
    scene = Scene()
    first, second = (scene.ask(view_of(live, "2020-01-01", NOW)) for _ in range(2))
    scene.running.pop(0).errback(ValueError("damaged"))
    assert first.result.check(ValueError)
    scene.clock.advance(0)
    scene.end("made")
    assert second.result == "made"

"""Blocks, versions in quarantine and counts of rules, on every engine."""

import pytest

from pkgrepo.errors import Conflict, NotFound
from pkgrepo.model import SYSTEM
from pkgrepo.storage.catalog.server import freezes, policy
from pkgrepo.storage.catalog.server.repositories import config_serial
from tests.support.catalogs import add_repository

BLOCK = {"repository": "main/*", "package": "left", "versions": "<2", "digests": ["sha256:ab"], "reason": "bad"}


async def test_blocks_are_read_with_each_change_of_the_configuration(catalog):
    serial = await catalog.look(config_serial)
    made = await catalog.write(lambda tx: policy.add_block(tx, **BLOCK, ends_ms=5000, actor="ann", now_ms=1000))
    assert (made.digests, made.ends_at.timestamp(), made.created_at.timestamp()) == (["sha256:ab"], 5, 1)
    assert await catalog.look(config_serial) > serial
    assert (await catalog.look(policy.read_policy)).blocks == [made]
    assert await catalog.write(policy.remove_block, made.uid) == made
    with pytest.raises(NotFound):
        await catalog.write(policy.remove_block, made.uid)
    assert await catalog.look(policy.list_blocks) == []


async def test_freezes_are_read_with_each_change_of_the_configuration(catalog):
    serial = await catalog.look(config_serial)
    given = {"repositories": ["main/*", "other/npm"], "exempt": ["left"], "reason": "worm", "actor": "ann"}
    made = await catalog.write(lambda tx: freezes.add_freeze(tx, **given, at_ms=5000, now_ms=9000))
    assert (made.repositories, made.exempt, made.at.timestamp()) == (["main/*", "other/npm"], ["left"], 5)
    assert (await catalog.look(policy.read_policy)).freezes == [made]
    more = await catalog.write(freezes.exempt_from_freeze, made.uid, ["left", "right@1"])
    assert more.exempt == ["left", "right@1"]
    before = await catalog.look(config_serial)
    assert before > serial
    await catalog.write(freezes.remove_freeze, made.uid)
    assert await catalog.look(config_serial) > before
    for change in (freezes.remove_freeze, lambda tx, uid: freezes.exempt_from_freeze(tx, uid, ["left"])):
        with pytest.raises(NotFound):
            await catalog.write(change, made.uid)
    assert await catalog.look(freezes.list_freezes) == []


async def test_freezes_and_their_exceptions_are_bounded(catalog, monkeypatch):
    monkeypatch.setattr(freezes, "MOST_FREEZES", 1)
    monkeypatch.setattr(freezes, "MOST_EXEMPT", 2)
    given = {"repositories": ["main/*"], "exempt": [], "reason": "", "actor": "ann", "at_ms": 5000, "now_ms": 9000}
    made = await catalog.write(lambda tx: freezes.add_freeze(tx, **given))
    with pytest.raises(Conflict):
        await catalog.write(lambda tx: freezes.add_freeze(tx, **given))
    with pytest.raises(Conflict):
        await catalog.write(freezes.exempt_from_freeze, made.uid, ["a", "b", "c"])
    assert (await catalog.look(freezes.find_freeze, made.uid)).exempt == []


async def test_a_decision_on_a_version_in_quarantine_holds_until_another_one(catalog):
    repository = await catalog.write(add_repository)
    held = [(repository.id, "left", version, "look", "new") for version in ("1", "2")]
    first = await catalog.write(policy.note_quarantined, held, 1000)
    assert [each.version for each in first] == ["1", "2"]
    assert await catalog.write(policy.note_quarantined, held, 2000) == []
    assert (await catalog.look(policy.read_policy)).rulings == {}
    for approved in (True, False):
        decided = await catalog.write(
            lambda tx, ok=approved: policy.decide_quarantined(
                tx, first[0].uid, approved=ok, comment="why", actor=SYSTEM, now_ms=3000
            )
        )
        assert decided.state == (policy.APPROVED if approved else policy.DENIED)
        rulings = (await catalog.look(policy.read_policy)).rulings
        assert rulings == {repository.id: {("left", "1"): (approved, "why")}}
    assert [each.version for each in await catalog.look(policy.list_quarantined, policy.WAITING, 2**62, 5)] == ["2"]
    both = await catalog.look(policy.list_quarantined, "", 2**62, 5)
    assert [each.version for each in both] == ["2", "1"]
    assert [each.version for each in await catalog.look(policy.list_quarantined, "", both[0].id, 5)] == ["1"]


async def test_of_too_many_versions_in_quarantine_the_oldest_go_and_come_again(catalog):
    repository = await catalog.write(add_repository)
    held = [(repository.id, "left", str(version), "look", "new") for version in range(5)]
    first = await catalog.write(policy.note_quarantined, held[:1], 1000)
    await catalog.write(
        lambda tx: policy.decide_quarantined(tx, first[0].uid, approved=False, comment="", actor=SYSTEM, now_ms=1500)
    )

    async def waiting():
        return [each.version for each in await catalog.look(policy.list_quarantined, policy.WAITING, 2**62, 9)]

    await catalog.write(policy.note_quarantined, held, 2000, 3)
    assert await waiting() == ["4", "3", "2"]
    await catalog.write(policy.note_quarantined, held[1:2], 3000, 3)
    assert await waiting() == ["1", "4", "3"]
    assert len(await catalog.look(policy.list_quarantined, "", 2**62, 9)) == 4, "what was decided stays"


async def test_counts_of_rules_are_added_up_by_day(catalog):
    repository = await catalog.write(add_repository)
    for _ in range(2):
        counts = {("main/x", "look", repository.id, 10): 2, ("main/x", "look", repository.id, 12): 1}
        await catalog.write(policy.add_counts, counts | {("main/x", "look", 999, 12): 5})  # which was removed
    assert await catalog.look(policy.counts_since, 0) == {("main/x", "look"): 6}
    assert await catalog.look(policy.counts_since, 11) == {("main/x", "look"): 2}


async def test_rules_of_the_server_are_stored_as_they_are_given(catalog):
    assert await catalog.look(policy.server_rules) == ()
    await catalog.write(policy.set_server_rules, [{"name": "a"}])
    assert (await catalog.look(policy.read_policy)).rules == [{"name": "a"}]

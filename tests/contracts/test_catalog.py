"""The contract of catalog engines, which ``conftest.py`` names."""

from threading import Event

import pytest
from twisted.internet import reactor
from twisted.internet.defer import Deferred, gatherResults
from zope.interface.verify import verifyObject

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import NOT_NOW, ICatalog
from pkgrepo.model.advisories import HIGHEST, SEVERITIES, Advisory
from pkgrepo.storage.catalog import advisories, download_log, fetches, logged_requests, usage_counts
from pkgrepo.storage.catalog.descriptions import find_described
from pkgrepo.storage.catalog.packages import dependencies, summaries, text_index
from pkgrepo.storage.catalog.packages.facts import Facts, facts_of
from pkgrepo.storage.catalog.people import users
from pkgrepo.storage.catalog.server import settings
from tests.support.catalogs import NOW, add_repository, publish
from tests.support.inprocess_server import until
from tests.support.timeouts import TIMEOUT_S


def two_values(reader, first, second):
    return settings.get(reader, first), settings.get(reader, second)


async def notices(case, catalog, before):
    """Wait until a catalog has noticed a commit since a generation; on one machine it has at once."""
    if case.one_machine:
        assert catalog.generation() != before
    await until(lambda: catalog.generation() != before)


def refuse(tx, key):
    settings.put(tx, key, "never seen")
    raise NotFound("thing", key)


def test_the_engine_has_the_whole_interface(catalog):
    assert verifyObject(ICatalog, catalog)


async def test_statistics_of_a_catalog_that_did_not_grow_are_not_renewed(catalog):
    await catalog.renew_statistics()
    assert not await catalog.renew_statistics()


async def test_a_write_returns_the_result_of_its_command(catalog):
    assert await catalog.write(settings.increment, "serial") == 1
    assert await catalog.write(settings.increment, key="serial") == 2


async def test_a_query_after_a_write_sees_its_rows(catalog):
    seen = []

    for _ in range(50):
        await catalog.write(settings.increment, "serial")
        seen.append(await catalog.look(settings.get, "serial"))
    assert seen == [str(n) for n in range(1, 51)]
    assert await catalog.scan(settings.get, "serial") == "50"


async def test_other_workers_see_a_write_when_it_has_returned(case, catalog):
    other = await case.another()
    for number in range(1, 20):
        await (catalog, other)[number % 2].write(settings.increment, "serial")
        assert await catalog.look(settings.get, "serial") == await other.look(settings.get, "serial") == str(number)


async def test_the_generation_changes_with_every_commit_of_any_worker(case, catalog):
    other = await case.another()
    for writer in (catalog, other, catalog, other):
        before = {each: each.generation() for each in (catalog, other)}
        await writer.write(settings.increment, "serial")
        assert writer.generation() != before.pop(writer)
        await notices(case, *before.popitem())


async def test_the_generation_does_not_change_without_writes(catalog):
    await catalog.write(settings.increment, "serial")
    before = catalog.generation()
    await catalog.look(settings.get, "serial")
    await catalog.scan(settings.get, "serial")
    assert catalog.generation() == before


async def test_the_generation_stays_the_same_in_a_moment(case, catalog):
    other = await case.another()
    with catalog.pinned() as generation:
        await other.write(settings.increment, "serial")  # as another process does
        assert catalog.generation() == generation
    await notices(case, catalog, generation)


async def test_a_failing_command_raises_its_error_and_changes_nothing(catalog):
    with pytest.raises(NotFound, match="thing 'a' does not exist"):
        await catalog.write(refuse, "a")
    assert await catalog.look(settings.get, "a") is None


async def test_a_failing_command_does_not_affect_concurrent_commands(catalog):
    writes = [catalog.write(refuse if n % 3 == 1 else settings.increment, f"key {n}") for n in range(60)]
    failed = []
    for number, write in enumerate(writes):
        try:
            assert await write == 1
        except NotFound:
            failed.append(number)
    assert failed == list(range(1, 60, 3))
    assert [n for n in range(60) if await catalog.look(settings.get, f"key {n}") is None] == failed


async def test_commands_run_in_the_order_of_their_calls(catalog):
    order = await gatherResults([catalog.write(settings.increment, "serial") for _ in range(100)])
    assert order == list(range(1, 101))


async def test_a_cancelled_write_drops_only_its_own_result(catalog):
    dropped = catalog.write(settings.increment, "serial")
    dropped.addErrback(lambda _: "dropped")
    kept = catalog.write(settings.increment, "serial")
    dropped.cancel()
    assert await dropped == "dropped"
    assert await kept == 2


async def test_a_query_reads_one_snapshot(case, catalog):
    other = await case.another()
    await catalog.write(settings.put, "serial", "old")
    first_read: Deferred[None] = Deferred()
    written = Event()
    pausing = False

    def slow(view):
        first = settings.get(view, "serial")
        if pausing:
            reactor.callFromThread(first_read.callback, None)
            assert written.wait(TIMEOUT_S)
        return first, settings.get(view, "serial")

    # A store may run a query again, for instance when it first learns that it has two statements.
    assert await catalog.scan(slow) == ("old", "old")
    pausing = True
    scan = catalog.scan(slow)
    await first_read
    await other.write(settings.put, "serial", "new")
    written.set()
    assert await scan == ("old", "old")
    assert await catalog.scan(settings.get, "serial") == "new"


async def test_a_failed_look_does_not_affect_the_next_one(catalog):
    def broken(reader):
        settings.get(reader, "serial")
        raise NotFound("thing", "a")

    with pytest.raises(NotFound):
        await catalog.look(broken)
    with pytest.raises(NotFound):
        await catalog.scan(broken)
    await catalog.write(settings.increment, "serial")
    assert await catalog.look(two_values, "serial", "other") == ("1", None)
    assert await catalog.scan(two_values, "serial", "other") == ("1", None)


async def test_a_peek_returns_the_result_of_a_look_or_not_now(catalog):
    for number in range(1, 4):
        await catalog.write(settings.increment, "serial")
        assert catalog.peek(settings.get, "serial") in (NOT_NOW, str(number))
        assert catalog.peek(settings.get, "nothing") in (NOT_NOW, None)


async def test_a_command_sees_its_own_writes_and_those_of_commands_before_it(catalog):
    def twice(tx):
        return settings.increment(tx, "serial"), settings.increment(tx, "serial"), settings.get(tx, "serial")

    first, second = catalog.write(twice), catalog.write(twice)
    assert await first == (1, 2, "2")
    assert await second == (3, 4, "4")


async def test_stop_completes_every_accepted_command(case, catalog):
    writes = [catalog.write(settings.increment, "serial") for _ in range(200)]
    await catalog.stop()
    assert await gatherResults(writes) == list(range(1, 201))
    assert await (await case.another()).look(settings.get, "serial") == "200"


async def test_wait_idle_returns_when_all_operations_have_completed(catalog):
    assert not await catalog.wait_idle()
    writes = [catalog.write(settings.increment, "serial") for _ in range(20)]
    scan = catalog.scan(settings.get, "serial")
    assert await catalog.wait_idle()
    assert all(each.called for each in (*writes, scan))
    await gatherResults([*writes, scan])
    assert not await catalog.wait_idle()


async def test_a_stopped_catalog_refuses_work(case, catalog):
    await catalog.stop()
    with pytest.raises(RuntimeError):
        await catalog.write(settings.increment, "serial")
    with pytest.raises(RuntimeError):
        await catalog.look(settings.get, "serial")
    await catalog.stop()


async def test_inserts_return_keys_and_statements_return_row_counts(catalog):
    def insert_two(tx):
        sql = "INSERT INTO event (repository_id, kind, at) VALUES (1, 'published', 0) RETURNING seq"
        first, second = tx.insert(sql), tx.insert(sql)
        return second - first, tx.execute("UPDATE event SET kind = 'x'"), tx.execute("DELETE FROM event WHERE seq = 0")

    assert await catalog.write(insert_two) == (1, 2, 0)


async def test_arguments_may_have_any_name(catalog):
    def echo(_, *, query, command):
        return query, command

    words = {"query": 1, "command": 2}
    assert await catalog.look(echo, **words) == await catalog.scan(echo, **words) == await catalog.write(echo, **words)


async def test_downloads_dependents_and_facts_are_the_same_on_every_engine(catalog):
    repository = await catalog.write(add_repository)
    files = [await catalog.write(publish, repository, f"{each}.whl", version=each) for each in ("1.0", "2.0")]
    package_id = files[0].package_id
    batch = [
        usage_counts.Download(
            item_id=each.id,
            repository_id=repository.id,
            package_id=package_id,
            path=each.path,
            user_id=None,
            token_id=None,
            at_ms=30 * usage_counts.DAY_MS,
        )
        for each in (files[1], *files)
    ]
    for _ in range(2):
        await catalog.write(usage_counts.record_downloads, batch)
    found = await catalog.scan(usage_counts.downloads_of_repositories, [repository.id], 0)
    assert found == {repository.id: {30: 6}}
    assert await catalog.scan(usage_counts.downloads_by_version, package_id, 0, 9) == [("2.0", 4), ("1.0", 2)]
    listed = await catalog.scan(summaries.list_version_summaries, package_id)
    assert [(each.text, each.downloads) for each in listed] == [("2.0", 4), ("1.0", 2)]
    needs = dependencies.needs_of({"requires_dist": ["Left_Pad>=1", "x"]})
    await catalog.write(dependencies.put_dependencies, package_id, needs)
    described = await catalog.scan(find_described)
    place = described, "left-pad", [repository.id]
    (found,) = await catalog.scan(dependencies.list_dependents, *place, limit=9, order="name")
    assert (found.package, found.latest, found.needed.text) == ("demo", "2.0", "Left_Pad>=1")
    assert await catalog.scan(dependencies.count_dependents, *place) == 1
    await catalog.write(text_index.put_about, package_id, "demo")
    at = repository.id, "demo"
    assert await catalog.scan(facts_of, described, [at, (repository.id, "none")]) == {at: Facts()}
    assert await catalog.scan(text_index.without_about, 0, 9) == []


def advisory(id, low, high, severity="high", *, package="demo", aliases=()):
    return Advisory(
        id=id,
        ecosystem="PyPI",
        package=package,
        title=id,
        url="",
        severity=severity,
        aliases=tuple(aliases),
        spans=((low, high),),
        modified="2026",
    )


async def test_vulnerable_versions_are_found_by_every_engine(catalog):
    repository = await catalog.write(add_repository)
    for package, version in (("demo", "1.0"), ("demo", "2.0"), ("demo", "3.0"), ("other", "1.0"), ("fine", "1.0")):
        await catalog.write(publish, repository, f"{package}-{version}.whl", package=package, version=version)
    place = (repository.id, "PyPI")
    records = [
        advisory("PYSEC-1", b"1.0", b"2.0\0", "unknown", aliases=["GHSA-1"]),
        advisory("GHSA-1", b"", b"2.0"),
        advisory("GHSA-2", b"3.0", HIGHEST, "critical"),
        advisory("GHSA-3", b"", HIGHEST, "low", package="other"),
        advisory("GHSA-4", b"", HIGHEST, package="absent"),
    ]
    await catalog.write(advisories.put_records, [(each.id, [each]) for each in records])
    page = {"limit": 9, "order": "-severity"}
    found = await catalog.scan(advisories.list_findings, [place], **page)
    shown = [(each.package, each.advisory, SEVERITIES[each.severity], each.versions) for each in found]
    assert shown == [("demo", "GHSA-2", "critical", 1), ("demo", "GHSA-1", "high", 2), ("other", "GHSA-3", "low", 1)]
    after = advisories.FINDING_ORDERS["-severity"].position(found[0])
    assert await catalog.scan(advisories.list_findings, [place], **page, after=after) == found[1:]
    only = await catalog.scan(
        advisories.list_findings, [place], limit=9, order="package", package_key="demo", severity=4
    )
    assert only == [found[1]]
    assert await catalog.scan(advisories.affected_versions, place, found[1]) == ["2.0", "1.0"]
    counts = ({"critical": 1, "high": 1, "low": 1}, 2)
    assert await catalog.scan(advisories.count_findings, [place]) == counts
    assert await catalog.scan(advisories.vulnerable_packages, [place], 9) == [
        (repository.id, "demo"),
        (repository.id, "other"),
    ]
    severities = await catalog.scan(advisories.severities_of_packages, place, ["demo", "fine", "other"])
    assert severities == {"demo": {"critical": 1, "high": 1}, "other": {"low": 1}}
    read = await catalog.scan(advisories.advisories_of, "PyPI", ["demo", "fine"])
    assert [(each.id, each.shown_as, each.severity) for each in read["demo"]] == [
        ("GHSA-1", "GHSA-1", "high"),
        ("GHSA-2", "GHSA-2", "critical"),
        ("PYSEC-1", "GHSA-1", "high"),
    ]
    assert await catalog.scan(advisories.modified_of, ["GHSA-2", "GHSA-9"]) == {"GHSA-2": "2026"}
    assert await catalog.scan(advisories.record_ids, "GHSA-2", 2) == ["GHSA-3", "GHSA-4"]
    await catalog.write(advisories.put_records, [(each, ()) for each in ("GHSA-1", "GHSA-2", "GHSA-9")])
    left = await catalog.scan(advisories.list_findings, [place], **page)
    assert [(each.advisory, SEVERITIES[each.severity]) for each in left] == [("GHSA-3", "low"), ("PYSEC-1", "unknown")]
    assert await catalog.scan(advisories.count_records) == {"PyPI": 3}
    assert await catalog.scan(advisories.list_findings, [], **page) == []


async def test_the_download_log_says_who_fetched_what_on_every_engine(catalog):
    repository = await catalog.write(add_repository)
    files = [await catalog.write(publish, repository, f"{each}.whl", version=each) for each in ("1.0", "2.0")]
    alice = await catalog.write(users.add_user, username="alice", now_ms=NOW)
    day = usage_counts.DAY_MS

    def download(file, user_id=None, at_ms=30 * day, **rest):
        place = file.id, repository.id, file.package_id, file.path
        return usage_counts.Download(*place, user_id, None, at_ms, last_ms=at_ms + 5, **rest)

    batch = [
        download(files[0], alice.id, count=2),
        download(files[0], alice.id, 31 * day, pipeline="acme/app"),
        download(files[0], address="192.0.2.0/24"),
        download(files[1], 99, 29 * day),
    ]
    await catalog.write(download_log.log_downloads, batch)
    earlier = [download(files[0], alice.id, 30 * day - 7), download(files[0], alice.id, 30 * day + 9)]
    await catalog.write(download_log.log_downloads, earlier)
    assert await catalog.look(download_log.logged_since) == 29 * day
    assert await catalog.scan(download_log.count_rows) == 5

    asked = fetches.Question(repositories=[repository.id], packages=["demo"], versions=["1.0"])
    found = await catalog.scan(fetches.list_fetches, asked, limit=9, anonymous=False)
    assert [(each.username, each.token, each.first_ms, each.last_ms, each.count) for each in found] == [
        ("alice", "acme/app", 31 * day, 31 * day + 5, 1),
        ("alice", None, 30 * day - 7, 30 * day + 14, 4),
    ]
    (anonymous,) = await catalog.scan(fetches.list_fetches, asked, limit=9, anonymous=True)
    assert (anonymous.username, anonymous.address, anonymous.count) == (None, "192.0.2.0/24", 1)
    assert await catalog.scan(fetches.count_fetches, asked) == fetches.Totals(1, 6, 1, 2)
    for order in fetches.FETCH_ORDERS.values():
        whole = await catalog.scan(fetches.list_fetches, asked, limit=9, order=order.name)
        after = order.position(whole[0])
        assert await catalog.scan(fetches.list_fetches, asked, after=after, limit=9, order=order.name) == whole[1:]

    sha256 = bytes.fromhex(files[1].sha256)
    by_digest = fetches.Question(digests=[sha256])
    (item,) = [each for each in await catalog.scan(fetches.list_fetched, by_digest, 9) if "2.0" in each.path]
    assert (item.repository, item.package, item.version, item.count) == (repository.path, "demo", "2.0", 1)
    nowhere = fetches.Question(repositories=[], packages=["demo"])
    assert await catalog.scan(fetches.count_fetches, nowhere) == fetches.Totals(0, 0, 0, 0)

    requests = await catalog.scan(logged_requests.requests_of_package, repository.id, "demo", 30)
    assert [(each.version, each.day, each.count) for each in requests] == [("1.0", 30, 4), ("1.0", 31, 1)]
    users_of = await catalog.scan(logged_requests.clients_of_items, [requests[0].item_id], 30, 31, 9)
    assert users_of == ["alice", "alice (token acme/app)"]
    assert await catalog.scan(logged_requests.requests_of_removed, 0, 30, 1) == ([], requests[0].item_id)
    assert await catalog.scan(logged_requests.requests_of_removed, 99, 30, 1) == ([], None)

    while await catalog.write(download_log.remove_expired_downloads, 31, 1):
        pass
    assert await catalog.scan(download_log.count_rows) == 1
    assert await catalog.scan(fetches.list_fetched, by_digest, 9) == []
    while await catalog.write(download_log.remove_expired_downloads, 32, 9):
        pass
    assert (
        await catalog.scan(lambda r: r.all("SELECT id FROM download_item UNION SELECT id FROM download_client")) == []
    )

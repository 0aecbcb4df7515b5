"""Write commands that depend on the isolation of transactions, on every engine of the catalog: quotas and stages."""

import pytest
from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.errors import Conflict, FileExists, QuotaExceeded
from pkgrepo.model import SYSTEM, Action, NewFile, SubjectKind
from pkgrepo.repositories.publish.package_changes import remove_files
from pkgrepo.repositories.publish.releases import Release, publish_release
from pkgrepo.repositories.publish.room import Reservations, Room, read_allowances
from pkgrepo.repositories.upkeep.staging import Approval, approve_stage, reject_stage
from pkgrepo.storage.catalog.blobs import uploads
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.people import grants, groups, users
from pkgrepo.storage.catalog.server import quotas, repositories, stages
from pkgrepo.storage.catalog.server.quotas import QuotaKind
from tests.support.admission import admitted
from tests.support.catalogs import NOW, add_repository, make_blob
from tests.support.quota_walk import QuotaWalk, add_two_repositories
from tests.support.tree_format import TREE_FORMAT


async def test_the_counts_of_repositories_equal_the_sums_after_random_changes(catalog):
    repositories = await catalog.write(add_two_repositories)
    walk = QuotaWalk(catalog, repositories, seed=7)
    await walk.run(150, checked_each=5)
    assert walk.done > 30


async def test_grants_for_names_and_patterns_are_set_at_the_same_time_and_found_by_all(catalog):
    repository = await catalog.write(add_repository)
    ada, bob = [await catalog.write(users.add_user, username=name, now_ms=NOW) for name in ("ada", "bob")]
    crew = await catalog.write(groups.add_group, name="crew", now_ms=NOW)
    await catalog.write(groups.add_group_member, crew.id, bob.id)
    before = await catalog.look(users.identity_serial)

    async def give(place, kind, subject_id, actions):
        await catalog.write(grants.set_permission, place, kind, subject_id, actions)

    places = ["main/*", repository.id, "main/*", "*/x", repository.id]
    given = [give(each, SubjectKind.USER, ada.id, [Action.READ]) for each in places]
    given.append(give("*", SubjectKind.GROUP, crew.id, []))
    await gatherResults([Deferred.fromCoroutine(each) for each in given])
    assert await catalog.look(users.identity_serial) == before + 6
    own = await catalog.look(grants.permissions_of_user, ada.id)
    assert sorted((str(each.place), *each.actions) for each in own) == [
        ("*/x", "read"),
        (str(repository.id), "read"),
        ("main/*", "read"),
    ]
    of_group = await catalog.look(grants.permissions_of_user, bob.id)
    assert [(each.place, each.subject_name, each.actions) for each in of_group] == [("*", "crew", frozenset())]
    assert sorted(await catalog.look(grants.list_patterns)) == ["*", "*/x", "main/*"]
    for patterns, found in (([], ["ada"]), (["*"], ["ada", "bob"])):
        assert await catalog.look(grants.users_with_rights, repository.id, patterns, None, limit=9) == found
    await catalog.write(groups.remove_group, crew.id)
    await catalog.write(users.remove_user, ada.id)
    assert await catalog.look(grants.list_patterns) == []


async def test_reservations_of_quotas_hold_over_all_processes_and_end_with_a_publish_or_their_process(catalog):
    repository, _ = await catalog.write(add_two_repositories)
    await catalog.write(quotas.change_limits, QuotaKind.STORAGE, repository.storage_id, {"bytes": 1000})
    clock = SteppedClock()
    processes = [Reservations(catalog, clock) for _ in range(2)]

    async def room(process):
        return Room(await catalog.look(read_allowances, repository), process)

    first, second = await room(processes[0]), await room(processes[1])
    await first.take(400)
    await first.take(200)
    with pytest.raises(QuotaExceeded) as refused:
        await second.take(500)
    assert (refused.value.used, refused.value.added) == (600, 500)
    await second.take(400)
    mine = second.hand_over()
    size = processes[1].publishing(mine, lambda tx: quotas_used(tx, repository))
    assert (await catalog.write(size), await room_left(catalog)) == (0, [600])
    processes[1].forget(mine)
    await first.release()
    assert await room_left(catalog) == []

    taken = await gatherResults(
        [Deferred.fromCoroutine(tried((await room(processes[each % 2])).take(300))) for each in range(6)]
    )
    assert (sorted(taken), await room_left(catalog)) == ([False] * 3 + [True] * 3, [300] * 3)

    clock.advance_ms(61_000)  # of a killed process
    fresh = await room(Reservations(catalog, clock))
    await fresh.take(1000)
    assert await room_left(catalog) == [1000]
    await fresh.release()

    await catalog.write(
        uploads.add_upload,
        uid="unfinished",
        repository_id=repository.id,
        storage_id=repository.storage_id,
        package_key="app",
        user_id=None,
        state=b"",
        now_ms=clock.now_ms(),
        algorithms=(),
    )
    await catalog.write(lambda tx: tx.execute("UPDATE upload SET position = 900"))
    with pytest.raises(QuotaExceeded):
        await fresh.take(200)
    clock.advance_ms(3_600_000)  # the client has left
    await fresh.take(200)
    for each in processes:
        each.forget(list(each._held))
    await fresh.release()


class SteppedClock:
    """A clock that the test advances."""

    def __init__(self):
        self._now_ms = 1_800_000_000_000

    def now_ms(self):
        return self._now_ms

    def advance_ms(self, by):
        self._now_ms += by


async def room_left(catalog):
    """The sizes of the reservations that are held."""
    rows = await catalog.look(lambda r: r.all("SELECT size FROM quota_reservation ORDER BY size"))
    return [size for (size,) in rows]


def quotas_used(r, repository):
    return quotas.usage_of(r, QuotaKind.STORAGE, repository.storage_id).bytes


async def tried(taking):
    """Whether bytes could be reserved."""
    try:
        await taking
    except QuotaExceeded:
        return False
    return True


async def open_stage(catalog, target):
    """Open a stage of a repository. Returns its id, and the repository that has what is staged."""
    configs = ({"type": "Hosted"}, {})
    at = (target, target, configs, configs, "st1", "staged-uid", "the autumn release", SYSTEM, NOW)
    stage = await catalog.write(stages.open_stage, *at)
    staged = await catalog.look(stages.staged_id, stage.uid)
    return stage.uid, await catalog.look(repositories.get_repository, staged)


def publish(tx, repository, package, content):
    """Publish version 1.0 of a package with one file."""
    path = f"{package}/1.0/file"
    release = Release(
        package_key=package,
        package_name=package,
        version_key="1.0",
        version_text="1.0",
        sort=b"1",
        files=(NewFile(path, make_blob(content)),),
    )
    publish_release(tx, repository, release, admitted(repository), TREE_FORMAT.index, NOW)


def sha256_of(r, repository, package):
    found = files.find_file(r, repository.id, f"{package}/1.0/file")
    return None if found is None else found.sha256


async def contents(catalog, repository):
    """Which of the packages a repository has."""
    return [name for name in "abc" if await catalog.look(sha256_of, repository, name)]


async def test_an_approval_publishes_all_of_a_stage_or_nothing(catalog):
    target = await catalog.write(add_repository)
    uid, staged = await open_stage(catalog, target)
    for name in "abc":
        await catalog.write(publish, staged, name, name.encode())
    await catalog.write(publish, target, "c", b"something else")
    approval = Approval(stage=uid, packages=["a", "b", "c"])
    with pytest.raises(FileExists):
        await catalog.write(approve_stage, target, approval, TREE_FORMAT, admitted(target), NOW)
    assert await contents(catalog, target) == ["c"]
    assert (await catalog.look(stages.find_stage, uid)).state == "open"

    await catalog.write(remove_files, target, "c", "1.0", None, SYSTEM, TREE_FORMAT.index, False, NOW)
    for wrong in (Approval(stage=uid, packages=["a"]), Approval(stage=uid, packages=["a", "b", "c"], serial=1)):
        with pytest.raises(Conflict):
            await catalog.write(approve_stage, target, wrong, TREE_FORMAT, admitted(target), NOW)
    ended = await catalog.write(approve_stage, target, approval, TREE_FORMAT, admitted(target), NOW)
    assert (ended.stage.state, len(ended.stage.content), len(ended.repositories)) == ("approved", 3, 2)
    assert await contents(catalog, target) == ["a", "b", "c"]
    used = await catalog.look(quotas.usage_of, QuotaKind.REPOSITORY, target.id)
    assert (used.bytes, used.packages, used.versions) == (3, 3, 3)


async def test_of_parallel_approvals_and_rejections_one_ends_a_stage(case, catalog):
    other = await case.another()
    target = await catalog.write(add_repository)
    uid, staged = await open_stage(catalog, target)
    await catalog.write(publish, staged, "a", b"a")
    approval = Approval(stage=uid, packages=["a"])

    async def end(at, how):
        try:
            if how == "approve":
                return (await at.write(approve_stage, target, approval, TREE_FORMAT, admitted(target), NOW)).stage.state
            return (await at.write(reject_stage, target, uid, "no", None, SYSTEM, NOW)).stage.state
        except Conflict:
            return ""

    tries = [(each, how) for how in ("approve", "reject") for each in (catalog, other)]
    ends = await gatherResults([Deferred.fromCoroutine(end(*each)) for each in tries])
    (state,) = [each for each in ends if each]
    assert (await catalog.look(stages.find_stage, uid)).state == state
    assert await contents(catalog, target) == (["a"] if state == "approved" else [])

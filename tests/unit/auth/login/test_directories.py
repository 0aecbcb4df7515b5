"""Which directories are asked for a password, and what their answers make of a login."""

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.auth.external_accounts import make_person
from pkgrepo.errors import AuthenticationFailed, DirectoryUnavailable, Forbidden, TooManyAttempts
from pkgrepo.model import UserKind
from pkgrepo.storage.catalog.people.groups import add_group, is_member
from pkgrepo.storage.catalog.people.linked_identities import find_linked
from pkgrepo.storage.catalog.people.users import find_user, find_user_by_name, set_password, update_user
from tests.support.auth import HOME, PASSWORD, AuthServices, basic, fails
from tests.support.quick_starts import FAST

THERE = "the password at the directory"


class StubDirectory:
    """A directory with people by their names; ``asked`` are the names that it was asked for."""

    def __init__(self, name="corp", *, auto_create=True, link_by_email=False):
        self.name = name
        self.issuer = f"ldap:{name}"
        self.auto_create = auto_create
        self.link_by_email = link_by_email
        self.people = {"ann": "1"}
        self.groups = []
        self.is_away = False
        self.held = None
        self.asked = []

    async def log_in(self, username, password):
        self.asked.append(username)
        if self.held is not None:
            gate = Deferred()
            self.held.append(gate)
            await gate
        if self.is_away:
            raise DirectoryUnavailable(self.name, "it is away")
        if username not in self.people or password != THERE:
            return None
        return make_person(
            self.issuer,
            self.people[username],
            username=username,
            name=username.title(),
            email=f"{username}@corp.example",
            groups=self.groups,
            group_names={},
            admin_groups=["chiefs"],
        )


@pytest.fixture
def corp():
    return StubDirectory()


@pytest.fixture
def services(corp):
    return AuthServices([corp])


def log_in(services, name, password=THERE, address=HOME):
    return services.authenticator.authenticate(basic(name, password), address)


async def test_the_first_login_makes_an_account_without_a_password(services, corp):
    identity = await log_in(services, "ann")
    assert (identity.username, identity.via) == ("ann", "password")
    user = services.catalog.do(find_user, identity.user_id)
    assert (user.name, user.email, user.kind) == ("Ann", "ann@corp.example", UserKind.PERSON)
    assert services.threads.calls == 0, "there is no hash to verify"
    for _ in range(3):
        assert (await log_in(services, "ann")).user_id == user.id
    assert corp.asked == ["ann"] * 2, "once accounts do not change, right answers are remembered for a minute"
    services.clock.advance(61)
    await log_in(services, "ann")
    assert corp.asked == ["ann"] * 3


async def test_without_auto_create_the_person_is_told_so(services, corp):
    corp.auto_create = False
    with pytest.raises(Forbidden, match="no account here"):
        await log_in(services, "ann")
    await fails(services, basic("ann", "wrong"))


async def test_groups_and_the_flag_are_those_of_each_login(services, corp):
    services.user("root", admin=True)
    crew = services.catalog.do(add_group, name="crew", now_ms=0)
    corp.groups = ["crew", "chiefs"]
    identity = await log_in(services, "ann")
    assert identity.admin
    assert services.catalog.do(is_member, crew.id, identity.user_id)
    corp.groups = []
    services.clock.advance(61)
    assert not (await log_in(services, "ann")).admin
    assert not services.catalog.do(is_member, crew.id, identity.user_id)


async def test_an_account_with_a_password_here_asks_no_directory(services, corp):
    services.user("ann")
    assert (await log_in(services, "ann", PASSWORD)).username == "ann"
    await fails(services, basic("ann", THERE))
    assert corp.asked == []


async def test_an_account_of_the_same_name_is_linked_to_nobody(services, corp):
    services.user("ann", password="")  # of another provider
    with pytest.raises(Forbidden, match="'ann' is taken"):
        await log_in(services, "ann")


async def test_an_account_is_linked_by_the_address_if_the_setting_says_so(services, corp):
    mine = services.user("ann", email="Ann@corp.example")
    await fails(services, basic("ann", THERE))
    corp.link_by_email = True
    assert (await log_in(services, "ann")).user_id == mine.id
    assert services.catalog.do(find_linked, "ldap:corp", "1").user_id == mine.id
    corp.link_by_email = False
    services.clock.advance(61)
    assert (await log_in(services, "ann")).user_id == mine.id, "both passwords log in now"
    assert (await log_in(services, "ann", PASSWORD)).user_id == mine.id


@pytest.mark.parametrize("fields", [{"active": False}, {"kind": UserKind.SERVICE}])
async def test_accounts_that_do_not_log_in_ask_no_directory(services, corp, fields):
    services.user("ann", password="", **fields)
    await fails(services, basic("ann", THERE))
    assert corp.asked == []


@pytest.mark.parametrize("name", ["ann ", " ann", "a  nn", "änn", "\uff41nn", "ann\0", "a\tnn", "a\u00adnn"])
async def test_names_that_a_directory_could_take_for_others_are_not_asked_for(services, corp, name):
    await fails(services, basic(name, THERE))
    assert corp.asked == []


async def test_guesses_are_counted_whoever_checks_them(services, corp):
    for guess in range(5):
        await fails(services, basic("ann", f"guess {guess}"))
    with pytest.raises(TooManyAttempts):
        await log_in(services, "ann")
    assert len(corp.asked) == 5


async def test_parallel_guesses_get_no_further_than_guesses_in_a_row(services, corp):
    corp.held = []
    running = [
        Deferred.fromCoroutine(services.authenticator.authenticate(basic("ann", f"guess {count}"), HOME))
        for count in range(50)
    ]
    held, corp.held = corp.held, None
    for gate in held:
        gate.callback(None)
    for each in running:
        with pytest.raises((AuthenticationFailed, TooManyAttempts)):
            await each
    assert len(corp.asked) <= 5


async def test_both_passwords_of_an_account_are_one_guess(services, corp):
    user = services.user("ann", email="ann@corp.example")
    corp.link_by_email = True
    await log_in(services, "ann")
    for guess in range(4):
        await fails(services, basic("ann", f"guess {guess}"), address="198.51.100.7")
    services.clock.advance(61)
    assert (await log_in(services, "ann", address="198.51.100.7")).user_id == user.id
    assert not services.throttle._in_progress


async def test_a_client_that_leaves_between_both_has_guessed_once(services, corp):
    services.user("ann", email="ann@corp.example")
    corp.link_by_email = True
    for held in (services.threads, corp):
        held.held = []
        running = Deferred.fromCoroutine(log_in(services, "ann", "guess"))
        running.addErrback(lambda _: None)
        running.cancel()
        waiting, held.held = held.held, None
        for gate in waiting:
            gate.callback(None)
        assert not services.throttle._in_progress
    for guess in range(3):
        await fails(services, basic("ann", f"guess {guess}"))
    with pytest.raises(TooManyAttempts):
        await log_in(services, "ann")


async def test_a_directory_that_is_away_is_no_wrong_password(services, corp):
    services.user("root")
    corp.is_away = True
    for _ in range(10):  # which are no failures
        with pytest.raises(DirectoryUnavailable):
            await log_in(services, "ann")
    assert (await log_in(services, "root", PASSWORD)).username == "root"
    await fails(services, basic("root", "wrong"))


async def test_guesses_of_a_password_here_count_while_the_directory_is_away(services, corp):
    user = services.user("ann", email="ann@corp.example")
    corp.link_by_email = True
    await log_in(services, "ann")
    services.clock.advance(61)
    corp.is_away = True
    for guess in range(5):
        with pytest.raises(DirectoryUnavailable):
            await log_in(services, "ann", f"guess {guess}")
    with pytest.raises(TooManyAttempts):
        await log_in(services, "ann", PASSWORD)
    assert services.catalog.do(find_user, user.id).active


async def test_directories_are_asked_in_their_order():
    first, second = StubDirectory("first"), StubDirectory("second")
    services = AuthServices([first, second])
    first.people = {"ann": "1", "bob": "2"}
    second.people = {"cid": "1"}
    await log_in(services, "ann")
    assert (first.asked, second.asked) == (["ann"], [])
    assert (await log_in(services, "cid")).username == "cid"
    first.is_away = True
    services.clock.advance(61)
    assert (await log_in(services, "cid")).username == "cid", "the second one is enough"
    with pytest.raises(DirectoryUnavailable, match="first"):
        await log_in(services, "nobody")
    assert services.catalog.do(find_linked, "ldap:second", "1") is not None


async def test_wrong_at_one_directory_counts_while_another_is_away():
    first, second = StubDirectory("first"), StubDirectory("second")
    services = AuthServices([first, second])
    first.is_away = True
    for guess in range(5):
        with pytest.raises(DirectoryUnavailable):
            await log_in(services, "ann", f"guess {guess}")
    with pytest.raises(TooManyAttempts):
        await log_in(services, "ann")


async def test_an_account_that_was_switched_off_here_stays_so(services, corp):
    identity = await log_in(services, "ann")
    services.catalog.do(update_user, identity.user_id, now_ms=0, active=False)
    await fails(services, basic("ann", THERE))
    corp.people["other"] = "1"  # another name of the same person
    with pytest.raises(Forbidden, match="not active"):
        await log_in(services, "other")


async def test_a_login_that_changes_nothing_is_not_written(services, corp):
    await log_in(services, "ann")
    services.clock.advance(61)
    before = services.catalog.commits
    await log_in(services, "ann")
    assert services.catalog.commits == before
    services.clock.advance(3601)
    await log_in(services, "ann")
    assert services.catalog.commits == before + 1, "the last login is"


async def test_a_password_that_an_admin_sets_works_beside(services, corp):
    identity = await log_in(services, "ann")
    services.catalog.do(set_password, identity.user_id, FAST.hash(PASSWORD), now_ms=0)
    assert (await log_in(services, "ann", PASSWORD)).user_id == identity.user_id
    assert (await log_in(services, "ann")).user_id == identity.user_id
    assert services.catalog.do(find_user_by_name, "ann").id == identity.user_id

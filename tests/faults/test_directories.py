"""Directories that are dead, silent, break off, send too much, or answer what was not asked."""

from __future__ import annotations

import resource
from datetime import UTC, datetime

import pytest
import pytest_twisted
from attrs import evolve
from ldaptor.protocols import pureldap
from twisted.internet import reactor
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.protocol import Factory, Protocol

from pkgrepo.auth.external_accounts import MOST_GROUPS
from pkgrepo.auth.login.directories import Directories
from pkgrepo.auth.login.throttle import Throttle
from pkgrepo.errors import DirectoryUnavailable, TooManyAttempts
from pkgrepo.ldap.directory import MOST_IN_FILTER, Directory, Layout, OwnLogin
from pkgrepo.ldap.filters import Filter
from pkgrepo.ldap.messages import MOST_MESSAGE
from pkgrepo.ldap.servers import LONGEST_REST_S, REST_S, Address, Servers, Way
from pkgrepo.storage.catalog.people.linked_identities import LinkedIdentity
from pkgrepo.tls_policy import make_policy
from tests.support.catalog import MemoryCatalog

pytestmark = [pytest.mark.faults]

OK = pureldap.LDAPBindResponse(resultCode=0)
WRONG = pureldap.LDAPBindResponse(resultCode=49)
DONE = pureldap.LDAPSearchResultDone(resultCode=0)
LAYOUT = Layout(
    user_base="dc=corp",
    group_base="dc=corp",
    user_filter=Filter("(uid={username})", "username"),
    group_filter=Filter("(member={dn})", "dn"),
    nested_groups=False,
    username_attribute="uid",
    name_attribute="cn",
    email_attribute="mail",
    id_attribute="",
    group_attribute="cn",
    admin_groups=frozenset(),
)


def message(number, operation):
    return pureldap.LDAPMessage(operation, id=number).toWire()


def entry(name="ann", **attributes):
    found = [(key.encode(), [value]) for key, value in {"uid": name.encode(), "entryUUID": b"1", **attributes}.items()]
    return pureldap.LDAPSearchResultEntry(b"uid=%s,dc=corp" % name.encode(), found)


class Peer(Protocol):
    """A scripted server: ``factory.script`` has the answers to the requests of a connection, see ``scripted``."""

    def connectionMade(self):
        self.factory.connections.append(self)
        self.step = 0

    def dataReceived(self, data):
        self.factory.received += data
        script = self.factory.script
        if self.step >= len(script):
            return
        answer = script[self.step]
        self.step += 1
        if answer is None:
            self.transport.abortConnection()
        elif isinstance(answer, bytes):
            self.transport.write(answer)
        else:
            self.transport.write(b"".join(message(self.step, each) for each in answer))


class Scripts(Factory):
    protocol = Peer
    noisy = False

    def __init__(self):
        self.script = []
        self.connections = []
        self.received = b""


@pytest.fixture
def open_peer():
    """Start a peer with a script: a list of answers for each request, bytes to send, or None to break off."""
    opened = []

    def open_(*script, **settings):
        factory = Scripts()
        factory.script = list(script)
        layout = evolve(LAYOUT, nested_groups=settings.pop("nested", False))
        port = reactor.listenTCP(0, factory, interface="127.0.0.1")
        way = Way(
            addresses=[Address("127.0.0.1", port.getHost().port, False)],
            start_tls=False,
            policy=make_policy([]),
            connect_s=5.0,
            answer_s=settings.pop("answer_s", 10.0),
        )
        servers = Servers("corp", evolve(way, **settings), connections=4, reactor=reactor)
        directory = Directory(
            "corp", servers, layout, OwnLogin(dn="cn=us", password="ours"), auto_create=True, link_by_email=False
        )
        opened.append((port, directory))
        return factory, directory

    yield open_
    for port, directory in opened:
        directory.close()
        pytest_twisted.blockon(Deferred.fromCoroutine(stop(port)))


async def stop(port):
    await port.stopListening()


@pytest_twisted.ensureDeferred
async def test_a_peer_that_answers_as_it_should(open_peer):
    _, directory = open_peer([OK], [entry(), DONE], [OK], [OK], [entry("crew", cn=b"crew"), DONE])
    person = await directory.log_in("ann", "words")
    assert (person.subject, person.groups) == ("entryUUID=1", ["crew"])


FAULTS = {
    "silent": ([], "it did not answer within"),
    "silent later": ([[OK]], "it did not answer within"),
    "breaks off": ([None], "it closed the connection"),
    "breaks off later": ([[OK], None], "it closed the connection"),
    "breaks off in a message": ([[OK], message(2, entry())[:-4]], "it did not answer within"),
    "http": ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "it does not answer in LDAP"),
    "huge": ([[OK], b"\x30\x84\x3f\xff\xff\xff" + bytes(1000)], f"more than {MOST_MESSAGE} bytes"),
    "too many entries": ([[OK], [entry(), entry("bob"), entry("cid"), DONE]], "several entries have this name"),
    "endless entries": ([[OK], message(2, entry()) * 1000], "several entries have this name"),
    "entries for a login": ([[entry(), OK]], "more than it was asked for"),
    "endless references": (
        [[OK], message(2, pureldap.LDAPSearchResultReference([pureldap.LDAPString(b"ldap://x")])) * 1000],
        "more than it was asked for",
    ),
    "another number": ([message(9, OK)], "it answers what was not asked"),
    "notice of disconnection": ([message(0, pureldap.LDAPExtendedResponse(resultCode=52))], "it ends the connection"),
    "two answers": ([message(1, OK) * 2], "it answers what was not asked"),
    "refuses us": ([[WRONG]], "it refuses this server's own login"),
    "refers": ([[pureldap.LDAPBindResponse(resultCode=10)]], "it refers to another server"),
    "refers the search": ([[OK], [pureldap.LDAPSearchResultDone(resultCode=10)]], "it refers to another server"),
    "refers the password": (
        [[OK], [entry(), DONE], [pureldap.LDAPBindResponse(resultCode=10)]],
        "it refers to another server",
    ),
    "busy": ([[OK], [entry(), DONE], [pureldap.LDAPBindResponse(resultCode=51)]], "it is busy"),
    "no groups": (
        [[OK], [entry(), DONE], [OK], [OK], [pureldap.LDAPSearchResultDone(resultCode=50)]],
        "bind_dn may not search",
    ),
    "says twice": ([[OK], [entry(), DONE, DONE]], "it answers what was not asked"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest_twisted.ensureDeferred
async def test_a_fault_is_no_wrong_password_and_no_right_one(open_peer, fault):
    script, reason = FAULTS[fault]
    patient = "within" not in reason
    peer, directory = open_peer(*script, answer_s=10.0 if patient else 0.2)
    with pytest.raises(DirectoryUnavailable) as refused:
        await directory.log_in("ann", "words")
    assert reason in str(refused.value)
    if fault not in ("refers the password", "busy", "no groups", "says twice"):
        assert b"words" not in peer.received, "the password goes nowhere before the entry is found"


@pytest_twisted.ensureDeferred
async def test_a_server_that_keeps_to_no_limit_can_be_checked_and_says_who_is_gone(open_peer):
    # Samba 4.17 sends all that it finds
    crowd = [*(entry(f"p{number}") for number in range(300)), DONE]
    peer, directory = open_peer([OK], [DONE], crowd)
    now = datetime.now(UTC)
    assert await directory.ask(LinkedIdentity(1, "ldap:corp", "entryUUID=2", 7, {}, "directory", now, now)) is None
    peer.script = [[OK], crowd]
    assert "it answers, and shows people" in await directory.check()
    assert len(peer.connections) == 3, "those that have sent too much are not used again"


@pytest_twisted.ensureDeferred
async def test_more_groups_than_are_looked_at_keep_nobody_out_where_the_server_keeps_to_no_limit(open_peer):
    groups = [entry(f"g{number}", cn=b"g%d" % number) for number in range(MOST_GROUPS + 1)]
    direct = [*groups[: MOST_IN_FILTER + 1], DONE]
    _, directory = open_peer([OK], [entry(), DONE], [OK], [OK], direct, [*groups, DONE], nested=True)
    person = await directory.log_in("ann", "words")
    assert len(person.groups) == MOST_GROUPS


@pytest_twisted.ensureDeferred
async def test_what_comes_in_clear_after_the_answer_to_start_tls_is_no_answer(open_peer):
    ready = message(1, pureldap.LDAPStartTLSResponse(resultCode=0))
    peer, directory = open_peer(ready + message(2, OK), start_tls=True)
    with pytest.raises(DirectoryUnavailable, match=r"before TLS begins|what was not asked"):
        await directory.log_in("ann", "words")
    assert b"ours" not in peer.received


@pytest_twisted.ensureDeferred
async def test_a_caller_that_takes_too_long_in_all_is_ended(open_peer):
    _, directory = open_peer([OK], answer_s=0.1)

    async def work(connection):
        await Deferred()

    with pytest.raises(DirectoryUnavailable, match="in all"):
        await directory._servers.use(work)
    assert directory.trouble


@pytest_twisted.ensureDeferred
async def test_without_start_tls_nothing_is_said(open_peer):
    peer, directory = open_peer([pureldap.LDAPStartTLSResponse(resultCode=2)], start_tls=True)
    with pytest.raises(DirectoryUnavailable, match="it does not take StartTLS"):
        await directory.log_in("ann", "words")
    assert b"ours" not in peer.received


@pytest_twisted.ensureDeferred
async def test_a_directory_that_rests_is_asked_by_one_at_a_time(open_peer, monkeypatch):
    now = [reactor.seconds()]
    peer, directory = open_peer([[WRONG]])
    monkeypatch.setattr(directory._servers, "_reactor", Clocked(now))
    rest_s = REST_S
    for asked in range(1, 7):
        with pytest.raises(DirectoryUnavailable):
            await directory.log_in("ann", "words")
        for _ in range(20):
            with pytest.raises(DirectoryUnavailable):
                await directory.log_in("ann", "words")
        assert len(peer.connections) == asked
        assert directory.trouble
        now[0] += rest_s
        rest_s = min(rest_s * 2, LONGEST_REST_S)
    peer.script = [[OK], [DONE], [WRONG]]
    assert await directory.log_in("nobody", "words") is None
    assert directory.trouble == ""


class Clocked:
    """The reactor, with a time that the test sets."""

    def __init__(self, now):
        self._now = now

    def seconds(self):
        return self._now[0]

    def __getattr__(self, name):
        return getattr(reactor, name)


@pytest.mark.parametrize("answer_s", [0.3])
@pytest_twisted.ensureDeferred
async def test_a_thousand_logins_at_a_silent_directory_end_soon_and_hold_little(open_peer, answer_s):
    peer, directory = open_peer(answer_s=answer_s)
    directories = Directories([directory], MemoryCatalog(), parallel=4, reactor=reactor, now_ms=lambda: 0)
    throttle = Throttle()

    def log_in(number):
        name, address = f"person{number}", f"192.0.{number % 250}.{number // 250}"
        return Deferred.fromCoroutine(
            directories.log_in(
                [directory],
                name,
                "words",
                path=throttle.queue_path(name, address),
                begin=lambda: throttle.begin(name, address),
                failed=False,
            )
        )

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = await DeferredList([log_in(number) for number in range(1000)], consumeErrors=True)
    assert not [outcome for success, outcome in outcomes if success]
    kinds = [failure.type for _, failure in outcomes]
    assert set(kinds) == {DirectoryUnavailable, TooManyAttempts}
    assert len(peer.connections) < 100, "the others were refused while it rests"
    assert not throttle._in_progress
    assert not throttle._records, "no failure of anybody"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB

"""
Plays an incident: what rules would have said of each of its versions, from its publication until it was removed.

================================  ====================================================================================
what a proxy has                  in a drill
================================  ====================================================================================
the upstream's document           made of the versions that were there then, and read by the format's normaliser
what files have inside            read of the made archives, as of those of an upstream
provenance                        what the table says of a version, as if it had been verified
advisories on the package         the record that told of it, from its own publication on
the rules, and the decision       those that are given, in L{Judge}
================================  ====================================================================================

It asks at each moment at which something changes: at the publication, an hour and a day later, when another version
came or went, when the record came, and when a rule ends or a version is old enough for it. Between two of these the
answer is the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from attrs import evolve, field, frozen

from pkgrepo.model.advisories import Advisory
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.incidents.shapes import NEVER, UPSTREAM, Affected, Drilled, Incident, Made, Published
from pkgrepo.proxy.parts.jobs import normaliser_of
from pkgrepo.proxy.parts.values import Context, Entry
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.resolving.histories import listed_history
from pkgrepo.proxy.resolving.rules import MemberJudges
from pkgrepo.proxy.resolving.told import facts_told
from pkgrepo.repositories.advisories.records import read_record
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.conditions import DAY_MS, Facts
from pkgrepo.repositories.policy.judge import Judge, with_listed
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.storage.catalog.file_facts import Attested, FileFacts, attested_name, dependency_name, names_of

HOUR_MS: Final = 3600 * 1000
# Nobody can sign for the pipelines of the table: what it says of a version is taken for what its attestation was.
_VERIFIED: Final = Attested(root="", verified=True)
_ABSENT: Final = Attested(root="", why="the attestation is not there", until_ms=2**53)


@frozen
class Holding:
    """A rule that holds a version: its name, whose it is, what it does, and the data whose absence decided."""

    rule: str
    owner: str
    action: str
    missing: str = ""


@frozen
class Span:
    """A time (ms) in which a version was served, or held ``by`` a rule; ``also`` are all that would have held it."""

    from_ms: int
    until_ms: int
    by: Holding | None
    also: frozenset[Holding] = frozenset()


@frozen
class Played:
    """What became of a version, in the order of time; the spans cover all of the time in which an upstream had it."""

    package: str
    version: str
    spans: Sequence[Span]

    @property
    def served_ms(self) -> int:
        """For how long it would have been served."""
        return sum(each.until_ms - each.from_ms for each in self.spans if each.by is None)

    @property
    def outcome(self) -> str:
        """``held`` all the time, ``opened`` before it was removed, or ``served`` from its first minute on."""
        if self.spans[0].by is None:
            return "served"
        return "opened" if self.served_ms else "held"

    @property
    def at_first(self) -> frozenset[Holding]:
        """All rules that held it in its first minute."""
        return self.spans[0].also

    @property
    def throughout(self) -> frozenset[Holding]:
        """All rules each of which would have held it all the time."""
        return frozenset.intersection(*(each.also for each in self.spans))


@frozen(kw_only=True)
class Player:
    """
    Plays incidents for a member, with its rules; ``loaded`` tells whether it would have known of advisories.
    ``route_of`` is the name of the route by which it gets a package (a key).

    Made archives are read here and now: a call takes some 50 ms, so it is for a thread.
    """

    format: StoredFormat
    proxied: Proxied
    flat: FlatMember
    route_of: Callable[[str], str] = lambda _key: ""
    loaded: bool = True

    def play(self, incident: Incident) -> list[Played]:
        """What would have become of each version that did harm, in the order of their publication."""
        assert self.proxied.drilled is not None, "incidents are of formats that can be drilled"
        first = {self.format.package_key(each.name): each.versions[0].at_ms for each in incident.packages}
        found = [
            played
            for each in incident.packages
            if each.harmful
            for played in _Package(self, self.proxied.drilled, each, first).play()
        ]
        return sorted(found, key=lambda each: each.spans[0].from_ms)


@frozen(eq=False)
class _Package:
    """One package of an incident; ``first`` is when each package of it (a key) was first published (ms)."""

    player: Player
    drilled: Drilled
    affected: Affected
    first: Mapping[str, int]
    made: Mapping[str, tuple[Published, Made]] = field(init=False)
    key: str = field(init=False)
    _entries: dict[tuple[str, ...], Sequence[Entry]] = field(init=False, factory=dict)
    _facts: dict[str, FileFacts] = field(init=False, factory=dict)

    @made.default
    def _make(self) -> Mapping[str, tuple[Published, Made]]:
        name = self.affected.name
        return {each.version: (each, self.drilled.make(name, each)) for each in self.affected.versions}

    @key.default
    def _key(self) -> str:
        return self.player.format.package_key(self.affected.name)

    def play(self) -> Iterator[Played]:
        for each in self.affected.harmful:
            yield Played(self.affected.name, each.version, [*_joined(self._spans(each))])

    def _spans(self, published: Published) -> Iterator[Span]:
        at_ms, end_ms = published.at_ms, published.removed_ms
        fixed = {at_ms + HOUR_MS, at_ms + DAY_MS, end_ms, *self._changes()}
        while at_ms < end_ms:
            by, also, next_ms = self._ask(published, at_ms)
            until_ms = min(each for each in (*fixed, next_ms) if each > at_ms)
            yield Span(at_ms, until_ms, by, also)
            at_ms = until_ms

    def _changes(self) -> Iterator[int]:
        """When the document changes, or what is known."""
        for each in self.affected.versions:
            yield from (each.at_ms, each.removed_ms)
        if self.affected.known is not None:
            yield self.affected.known.at_ms

    def _ask(self, published: Published, at_ms: int) -> tuple[Holding | None, frozenset[Holding], int]:
        """By which rule it is held at a time, all that hold it, and when time alone changes that next."""
        entries = self._listed(at_ms)
        judge = self._judge(at_ms, entries)
        if judge is None:
            return None, frozenset(), NEVER
        own = [each for each in entries if each.version == published.version]
        facts = [judge.facts_of_entry(each, self.player.route_of(self.key)) for each in own]
        verdicts = [judge.decide(each) for each in facts]
        verdict = next((each for each in verdicts if each.served), verdicts[0])
        next_ms = judge.rules.next_change_ms([each.published_ms for each in own], at_ms)
        holding = frozenset.intersection(*(_holding(judge, each, verdict) for each in facts))
        return _named(verdict), holding, NEVER if next_ms is None else next_ms

    def _judge(self, at_ms: int, entries: Sequence[Entry]) -> Judge | None:
        """The judge of the package at a time, with all that a proxy would know then; None if no rule is about it."""
        player = self.player
        judges = MemberJudges(
            player.format, player.flat, at_ms, player.proxied, None, loaded=player.loaded, complete=player.loaded
        )
        judge = judges(None, self.key)
        if judge is None:
            return None
        known = self._advisories(at_ms) if player.loaded else None
        history = None
        if player.format.attests is not None and "trust" in judge.rules.needs:
            id_ = player.flat.repository.id
            history = listed_history(player.format, player.proxied.declares, id_, self.key, entries)
        own, facts = judges.own_data(judge.rules), self._told(entries)
        judge = with_listed(judge, entries, player.route_of(self.key))
        return evolve(judge, own=own, facts=facts, known=known, complete=player.loaded, history=history)

    def _listed(self, at_ms: int) -> Sequence[Entry]:
        """The entries of the document at a time, as the normaliser of the format reads them."""
        shown = {text: pair for text, pair in self.made.items() if pair[0].at_ms <= at_ms < pair[0].removed_ms}
        place = tuple(shown)
        if place not in self._entries:
            request = self.player.proxied.document_request(self.key)
            body = self.drilled.document(self.affected.name, shown, UPSTREAM)
            context = Context(name=request.name, url=next(iter(request.urls(UPSTREAM))))
            self._entries[place] = [*normaliser_of(request.normaliser)(body, context).entries]
        return self._entries[place]

    def _told(self, entries: Sequence[Entry]) -> Mapping[str, FileFacts]:
        """What the files tell of themselves, and what is attested of them, by their names."""
        member, player = self.player.flat.repository, self.player
        for entry in entries:
            published, made = self.made[entry.version]
            for source in entry.files:
                name = names_of(source.digests, member.id, source.path)[1]
                if source.path == made.path and name not in self._facts:
                    own = player.proxied.own_facts
                    self._facts[name] = facts_told(player.format, own, made.content, made.path)
                    attested = _VERIFIED if published.proof else _ABSENT
                    self._facts[attested_name(name, made.path)] = FileFacts(attested=attested)
                    for needed in map(player.format.package_key, published.needs):
                        known = FileFacts(published_ms=self.first.get(needed))
                        self._facts[dependency_name(member.id, needed)] = known
        return self._facts

    def _advisories(self, at_ms: int) -> Sequence[Advisory]:
        """The record that tells of the package, as it is read of a database, from its publication on."""
        known, ecosystem = self.affected.known, self.player.format.ecosystem
        if known is None or ecosystem is None or at_ms < known.at_ms:
            return ()
        about = {"ecosystem": ecosystem.name, "name": self.affected.name}
        told = [each.version for each in self.affected.harmful if each.at_ms <= known.at_ms]
        record = {
            "id": known.id,
            "published": known.at,
            "modified": known.at,
            "database_specific": {"severity": "CRITICAL"},
            "affected": [{"package": about, "versions": told}],
        }
        return read_record(msgspec.json.encode(record), {ecosystem.name: ecosystem}).advisories


def _holding(judge: Judge, facts: Facts, verdict: Verdict) -> frozenset[Holding]:
    """All rules that would hold something, each alone."""
    found = {each for each in (_named(verdict),) if each is not None}
    for each in judge.rules.rules:
        match = each.matches(facts, judge.now_ms)
        if match.met and each.acts(match) != "warn":
            found.add(Holding(each.placed.rule.name, each.placed.owner, each.acts(match), match.missing))
    return frozenset(found)


def _named(verdict: Verdict) -> Holding | None:
    if verdict.by is None:
        return None
    action = "quarantine" if verdict.waits else "block"
    return Holding(verdict.by.rule.name, verdict.by.owner, action, verdict.missing)


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """The same spans, of which those that follow each other and say the same are one."""
    for _, some in itertools.groupby(spans, key=lambda each: (each.by, each.also)):
        first, *rest = some
        yield evolve(first, until_ms=rest[-1].until_ms) if rest else first

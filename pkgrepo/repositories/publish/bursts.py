"""
Brakes on publishers: who suddenly publishes more than ever, or from elsewhere, is led to a stage that needs an
approval.

=================================  ==================================================================================
what is published                  where it goes
=================================  ==================================================================================
a package that was published by    to the repository: files of one deploy stay together
them in this hour
one more, within all limits        to the repository, and is counted
one more, beyond a limit           to a stage of theirs
one that is in an open stage of    to that stage
theirs
by the server itself, an           to the repository: it was decided before
approval, a promotion
=================================  ==================================================================================

The counts are those of the catalog, in the transaction that publishes: workers and nodes share them, and what cannot be
counted is not published. Of a publisher (a user, or a pipeline) a setting has the packages of this hour, the most of an
hour for each of the last 90 days, the networks, and the stages. What an approval lets through counts for later: those
many packages are no more than ever then, and the network is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from math import ceil
from typing import Annotated, Any, Final, Protocol

import msgspec
from attrs import frozen
from msgspec import Meta

from pkgrepo.errors import Conflict, Forbidden
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Repository, RepositoryType
from pkgrepo.model.admission import Admitted
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.packages.events import NewEvent, append_events
from pkgrepo.storage.catalog.people.tokens import find_token
from pkgrepo.storage.catalog.server import settings, stages
from pkgrepo.storage.catalog.server.stages import Stage
from pkgrepo.untrusted.networks import client_network

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
DAYS: Final = 90  # for which hours and networks are remembered
LEAST: Final = 5  # packages in an hour that are never more than ever
MOST: Final = 5000  # packages of one publisher in an hour: further ones go to a stage, whatever the limits
MOST_NETWORKS: Final = 200  # of a publisher
MOST_STAGES: Final = 20  # of a publisher that are open: then nothing more is taken
MOST_STAGED: Final = 500  # packages of a stage; then another one is opened
EVENT: Final = "package.held"


class Burst(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """When what somebody publishes is led to a stage that needs an approval."""

    packages_per_hour: Annotated[
        Annotated[int, Meta(ge=1, le=MOST)] | None,
        meaning("How many packages a publisher may publish in an hour; null for any number."),
    ] = None
    times_highest: Annotated[
        Annotated[float, Meta(ge=1, le=1000)] | None,
        meaning(
            "How many times as many packages as in the highest hour of the last 90 days a publisher may publish in an "
            "hour; 5 are never too many. Null for any number."
        ),
    ] = None
    new_networks: Annotated[
        bool, meaning("Whether what a publisher sends from a network for the first time in 90 days needs an approval.")
    ] = False
    new_pipelines: Annotated[
        bool, meaning("Whether what a pipeline publishes for the first time in 90 days needs an approval.")
    ] = False


class StageOpening(Protocol):
    """A stage that may be opened."""

    def open(self, tx: Transaction, actor: Actor, now_ms: int) -> Stage:
        """Open it. :raises Conflict: too many are open"""


@frozen
class Brake:
    """What holds an upload: why, and the open stage of the publisher that takes it; empty: none is open yet."""

    reason: str
    stage: str


class Held(Forbidden):
    """An upload that waits for an approval, and that cannot be led to a stage as it is, such as a push of an image."""

    def __init__(
        self, repository: Repository, keys: Sequence[str], brake: Brake, actor: Admitted, *, stage: str = ""
    ) -> None:
        how = f"to the stage {stage}, whose address is shown by: pkgrepo stage show {stage}"
        super().__init__(
            f"{', '.join(keys)} is published to {repository.path} by an approval at present (policy.burst), as "
            f"{brake.reason}: publish it {how if stage else 'to a stage, which is opened by: pkgrepo stage open'}"
        )
        self.repository = repository
        self.keys = keys
        self.brake = brake
        self.actor = actor


class _Waiting(msgspec.Struct):
    """What a stage holds of a publisher, and the networks that it came from."""

    packages: list[str] = []
    networks: list[str] = []


class _Publisher(msgspec.Struct):
    """What is remembered of a publisher: ``days`` are the most packages of an hour, ``networks`` the last days."""

    hour: int = 0
    packages: list[str] = []
    days: dict[int, int] = {}
    networks: dict[str, int] = {}
    waiting: dict[str, _Waiting] = {}

    @property
    def is_new(self) -> bool:
        """Whether nothing of the publisher was let through for as long as anything is remembered."""
        return not (self.packages or self.days or self.networks)

    @property
    def highest(self) -> int:
        """The most packages of an hour, before this one."""
        return max(self.days.values(), default=0)


_decode = msgspec.json.Decoder(_Publisher).decode


def braked(repository: Repository) -> Burst | None:
    """The brakes of a repository; None without any."""
    given: Any = repository.policy.get("burst") if repository.type is RepositoryType.HOSTED else None
    if not given or repository.stage is not None or repository.is_companion:
        return None
    return msgspec.convert(given, Burst)


def check_burst(tx: Transaction, repository: Repository, keys: Collection[str], actor: Admitted, now_ms: int) -> None:
    """
    Count packages (keys) that are published directly, where no stage can take them.

    :raises Held: they need an approval
    """
    brake = count(tx, repository, keys, actor, now_ms)
    if brake is not None:
        raise Held(repository, [*keys], brake, actor)


def count(tx: Transaction, repository: Repository, keys: Collection[str], actor: Admitted, now_ms: int) -> Brake | None:
    """Count packages (keys) that are to be published; what holds them, None for nothing. Held ones are not counted."""
    burst = braked(repository)
    if burst is None or actor.by():
        return None
    pipeline = _pipeline_of(tx, actor)
    place = _key(repository, actor, pipeline)
    text = settings.get(tx, place)
    known = _Publisher() if text is None else _decode(text)
    network, today = client_network(actor.address) if actor.address else "", now_ms // DAY_MS
    _settle(tx, known, now_ms)
    brake = _ask(burst, known, keys, network, new_pipeline=bool(pipeline) and known.is_new)
    if brake is None:
        known.packages += [each for each in keys if each not in known.packages]
        known.networks[network] = today
        while len(known.networks) > MOST_NETWORKS:
            del known.networks[min(known.networks, key=lambda each: known.networks[each])]
    settings.put(tx, place, msgspec.json.encode(known).decode())
    return brake


def lead_to_stage(
    tx: Transaction,
    repository: Repository,
    brake: Brake,
    keys: Sequence[str],
    opening: StageOpening,
    actor: Admitted,
    now_ms: int,
) -> str:
    """
    The id of the open stage that takes packages which are held, and which is opened if there is none.

    :raises Conflict: too many stages are open, or too many of the publisher
    """
    place = _key(repository, actor, _pipeline_of(tx, actor))
    text = settings.get(tx, place)
    known = _Publisher() if text is None else _decode(text)
    uid = brake.stage
    if not uid:
        if len(known.waiting) >= MOST_STAGES:
            raise Conflict(f"{MOST_STAGES} stages of {actor.name} wait for an approval")
        uid = opening.open(tx, actor, now_ms).uid
    held = known.waiting.setdefault(uid, _Waiting())
    fresh = [each for each in keys if each not in held.packages]
    held.packages += fresh
    network = client_network(actor.address) if actor.address else ""
    if network not in held.networks and len(held.networks) < MOST_NETWORKS:
        held.networks.append(network)
    settings.put(tx, place, msgspec.json.encode(known).decode())
    about = {"reason": brake.reason, "stage": uid}
    events = [NewEvent(repository.id, None, each, "", EVENT, {"package": each, **about}) for each in fresh]
    append_events(tx, events, actor, now_ms)
    return uid


def _ask(burst: Burst, known: _Publisher, keys: Collection[str], network: str, *, new_pipeline: bool) -> Brake | None:
    for uid, waiting in known.waiting.items():
        if any(each in waiting.packages for each in keys):
            return Brake("a stage that has it waits for an approval", uid)
    reason = _why(burst, known, keys, network, new_pipeline=new_pipeline)
    opened = next((uid for uid, each in known.waiting.items() if len(each.packages) < MOST_STAGED), "")
    return Brake(reason, opened) if reason else None


def _why(burst: Burst, known: _Publisher, keys: Collection[str], network: str, *, new_pipeline: bool) -> str:
    """Why packages are held; empty if they are not."""
    if burst.new_pipelines and new_pipeline:
        return "this pipeline has published nothing here for 90 days"
    if burst.new_networks and network not in known.networks:
        return f"its publisher has published nothing from {network or 'an unknown network'} for 90 days"
    more = [each for each in keys if each not in known.packages]
    many, most = len(known.packages) + len(more), min(MOST, burst.packages_per_hour or MOST)
    if more and many > most:
        return f"its publisher publishes more than {most} packages in an hour"
    highest = known.highest
    if more and burst.times_highest is not None and many > max(LEAST, ceil(highest * burst.times_highest)):
        return f"its publisher publishes {many} packages in an hour, and at most {highest} in one of the last 90 days"
    return ""


def _settle(tx: Transaction, known: _Publisher, now_ms: int) -> None:
    """Bring what is remembered up to now: hours that are over, days that are long ago, stages that have ended."""
    hour, today = now_ms // HOUR_MS, now_ms // DAY_MS
    if known.hour != hour:
        _note_hour(known, known.hour * HOUR_MS // DAY_MS, len(known.packages))
        known.hour, known.packages = hour, []
    for uid, waiting in list(known.waiting.items()):
        stage = stages.find_stage(tx, uid)
        if stage is not None and stage.state == stages.OPEN:
            continue
        del known.waiting[uid]
        if stage is not None and stage.state == stages.APPROVED:
            _note_hour(known, today, len(waiting.packages))
            known.networks |= dict.fromkeys(waiting.networks, today)
    known.days = {day: most for day, most in known.days.items() if day > today - DAYS}
    known.networks = {name: day for name, day in known.networks.items() if day > today - DAYS}


def _note_hour(known: _Publisher, day: int, packages: int) -> None:
    if packages:
        known.days[day] = max(packages, known.days.get(day, 0))


def _pipeline_of(tx: Transaction, actor: Admitted) -> str:
    token = None if actor.token_id is None else find_token(tx, actor.token_id)
    return "" if token is None or token.pipeline is None else token.pipeline.name


def _key(repository: Repository, actor: Admitted, pipeline: str) -> str:
    """The setting of a publisher; who is anonymous is one for all."""
    who = hashlib.sha256(f"{actor.user_id or 0}\0{pipeline}".encode()).hexdigest()[:32]
    return f"{settings.burst_prefix(repository.uid)}{who}"

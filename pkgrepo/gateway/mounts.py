"""
The repository that a request is for, and the refusal of those who may not know of it.

What the host and the path say is worked out once, when the head of the request is in, and carried on the request as its
L{Entry}. A request whose host or path prefix stands for a repository (see L{pkgrepo.repositories.addresses}) has the
path of that repository's own address from then on, in handlers, caches and logs; the address that the client used is in
the entry. A refusal is the same whether there is such a repository or not, and takes the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote, unquote

from attrs import Factory, define, evolve, frozen
from twisted.web.resource import IResource

from pkgrepo.auth.permissions.format_rights import has_images
from pkgrepo.auth.permissions.rules import NO_REPOSITORY
from pkgrepo.concurrency.late import Late
from pkgrepo.concurrency.lru import Lru
from pkgrepo.errors import Invalid, PkgrepoError
from pkgrepo.gateway.callers.access import unknown
from pkgrepo.gateway.callers.tokens import TAKEN
from pkgrepo.gateway.refusals import STATUSES, refusal_response
from pkgrepo.http.answering.late import LateResource
from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal
from pkgrepo.model import ANONYMOUS, Identity, Repository
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.repositories.past import read_moment, view_of
from pkgrepo.untrusted.text import decode_parts

from .format import Format
from .services import Services

PREFIX = b"/repositories/"
TICKETS: Final = b"/api/conda/uploads/"  # of the server at every host: anaconda-client sends files there with a ticket
MOST_REFUSALS: Final = 1000  # kept in memory; about 2 MB
MOST_VIEWS: Final = 256  # of the past, in memory: a resource of some KB each
LONGEST_KEPT: Final = 210  # bytes of storage and repository, none of which has a longer name

_NAME = re.compile(rb"[A-Za-z0-9_-]{1,100}")  # of storages and repositories, none of which is longer


Place = tuple[bytes, bytes, bytes]  # storage, repository and the path below it, all undecoded


def split(raw_path: bytes) -> Place | None:
    """The place of an address; None for addresses that are below no repository."""
    if not raw_path.startswith(PREFIX):
        return None
    storage, _, rest = raw_path[len(PREFIX) :].partition(b"/")
    name, _, below = rest.partition(b"/")
    return (storage, name, below) if storage and name else None


@frozen
class Mount:
    """
    A repository with the resource of its format; valid until the configuration changes.

    ``companions`` are the mounts of its companion repositories, by the path segment below its own address.
    """

    repository: Repository
    format: Format
    resource: IResource
    companions: Mapping[bytes, Mount] = Factory(dict)


@define(eq=False)
class Entry:
    """
    Where a request to a repository goes.

    ``place`` is its address, split. If the host or an alias stands for the repository, ``base`` is the repository's
    path in the address that the client used, without a slash at the end, and ``asked`` is the host or the alias.
    ``mount`` serves it, None if there is no such repository, and ``rest`` is the path below that mount, undecoded. It
    is ``current`` if the configuration in memory was, else ``mount`` is None.
    ``failure`` is what is wrong with the address, whatever the repository is: it names a view by something else than a
    date.
    ``known`` is whether callers without credentials may know of the repository; None if that is not asked yet, or not
    known without waiting.
    """

    place: Place
    mount: Mount | None = None
    rest: bytes = b""
    current: bool = False
    known: bool | None = None
    base: str | None = None
    asked: str = ""
    failure: Invalid | None = None


@frozen
class Elsewhere:
    """Instead of an entry: the address is of no repository, by a configuration that was current."""

    base: None = None


ELSEWHERE: Final = Elsewhere()


class Mounts:
    """Finds what serves ``/repositories/<storage>/<repository>/...``, and refuses what no caller may know of."""

    def __init__(self, *, services: Services, formats: Mapping[str, Format]) -> None:
        self._services = services
        self._registry = services.registry
        self._formats = formats
        self._serial = -1
        self._mounts: dict[tuple[bytes, bytes], Mount] = {}
        self._views: Lru[tuple[int, str], Mount] = Lru(MOST_VIEWS)
        self._refusals: dict[tuple[bytes, bytes], PreparedResponse] = {}

    @property
    def public_url(self) -> str:
        """The setting of this name; see L{Services}."""
        return self._services.public_url

    def refresh_now(self) -> bool:
        """Whether the configuration is in memory as it is now; see L{Registry}. It is not if it cannot be read."""
        return self._registry.refresh_now()

    async def refresh_configuration(self) -> None:
        """Have the configuration in memory as it is now; see L{Registry}."""
        await self._registry.refresh()

    def enter(self, request: Request) -> Entry | None:
        """
        The entry of a request, which it has from then on; None for addresses of no repository. Never waits.

        Such a request has L{ELSEWHERE} from then on, unless it may turn out otherwise with the present configuration.
        """
        found: Entry | Elsewhere | None = request.entry
        if found is not None:
            return found if isinstance(found, Entry) else None
        current = self.refresh_now()
        entry = self._enter_by_name(request)
        if entry is None:
            place = split(request.raw_path)
            if place is None:
                request.entry = ELSEWHERE if current else None
                return None
            entry = Entry(place)
        request.entry = entry
        if current:
            self._locate(entry)
        return entry

    def _enter_by_name(self, request: Request) -> Entry | None:
        """The entry of a request whose host or path prefix stands for a repository, with its new path; else None."""
        raw, addresses = request.raw_path, self._registry.addresses
        taken = raw.startswith(TAKEN)
        if taken:
            raw = raw[len(TAKEN) - 1 :]
        base = asked = ""
        path = addresses.of_host(request.asked_host) if addresses.hosts else None
        if path is not None:
            asked = request.asked_host
            bound = self._registry.find_path(path)
            if (bound is not None and has_images(bound)) or raw.startswith(TICKETS):
                path = None
        if path is None:
            base, path = addresses.of_path(raw) or ("", None)
            asked = base
        if path is None:
            if taken or raw.startswith(b"/t/"):  # what follows may be a token, of this server or of another one
                _readdress(request, b"/t")
            return None
        below = raw[len(base) + 1 :]
        _readdress(request, b"%b%b/%b" % (PREFIX, quote(path).encode("ascii"), below))
        place = split(request.raw_path)
        assert place is not None
        return Entry(place, base=base, asked=asked)

    async def refresh(self, entry: Entry) -> None:
        """Make an entry current, and have asked whether callers without credentials may know of the repository."""
        if not entry.current:
            await self._registry.refresh()
            self._locate(entry)
        if self.known_now(entry) is None and entry.mount is not None:
            entry.known = await self._services.access.authorizer.knows(ANONYMOUS, entry.mount.repository)

    def known_now(self, entry: Entry) -> bool | None:
        """Whether callers without credentials may know of the repository, if that is known without waiting."""
        if entry.known is None and entry.current:
            mount = entry.mount
            entry.known = mount is not None and self._services.access.authorizer.knows_now(ANONYMOUS, mount.repository)
        return entry.known

    def refuse_now(self, request: Request, entry: Entry) -> PreparedResponse | None:
        """
        The refusal of a read without credentials that needs some, from memory; None if it may be answered otherwise.

        Maven asks for each file without credentials first, so this is as frequent as downloads.
        """
        if entry.failure is not None or self._services.access.has_credentials(request):
            return None
        if self.known_now(entry) is not False or self.open_to_anonymous(entry.place) is not None:
            return None
        key = entry.place[:2] if entry.base is None else (b"", entry.asked.encode("ascii"))
        found = self._refusals.get(key)
        if found is None:
            error = unknown_place(ANONYMOUS, entry)
            status, code = STATUSES[type(error)]
            found = PreparedResponse(refusal_response(Refusal(status, str(error), code)))
            if len(self._refusals) >= MOST_REFUSALS:
                self._refusals.clear()
            if len(key[0]) + len(key[1]) <= LONGEST_KEPT:
                self._refusals[key] = found
        return found

    def _locate(self, entry: Entry) -> None:
        """Find the mount that serves an entry, which is that of a companion below the address of its parent."""
        storage, name, rest = entry.place
        try:
            mount = self.find(storage, name)
        except Invalid as error:
            mount, entry.failure = None, error
        if mount is not None and mount.companions:
            segment, _, below_companion = rest.partition(b"/")
            companion = mount.companions.get(segment)
            if companion is not None:
                mount, rest = companion, below_companion
        entry.mount, entry.rest, entry.current = mount, rest, True

    def find(self, storage: bytes, name: bytes) -> Mount | None:
        """
        The mount at ``storage/name``, as spelt in a raw path, or None. With ``@`` and a date it is that of a view.

        :raises Invalid: what follows the ``@`` is no date, or one in the future
        """
        serial = self._registry.serial
        if serial != self._serial:
            self._serial, self._mounts = serial, {}
        mount = self._mounts.get((storage, name))
        if mount is not None:
            return mount
        own, at, text = unquote(name.decode("latin-1")).partition("@")
        if at:
            return self._find_view(storage, quote(own).encode("ascii"), text)
        repository = self._registry.find(unquote(storage.decode("latin-1")), own)
        if repository is None or not repository.addressed:  # a companion is reached through its parent
            return None
        # Kept under the repository's own spelling only: clients can make up any number of others.
        key = (repository.storage_name.encode("utf-8"), repository.name.encode("utf-8"))
        mount = self._mounts.get(key) or self._mount(repository)
        if mount is not None:
            self._mounts[key] = mount
        return mount

    def _find_view(self, storage: bytes, name: bytes, text: str) -> Mount | None:
        now_ms = self._services.clock.now_ms()
        read_moment(text, now_ms)  # what is wrong with it is said whether there is the repository or not
        found = self.find(storage, name)
        if found is None or not found.format.dated:
            return None
        key, made = (found.repository.id, text), view_of(found.repository, text, now_ms)
        mount = self._views.get(key)
        before, now = None if mount is None else mount.repository.view, made.view
        if before is None or now is None or before.live is not now.live or before.settled != now.settled:
            mount = self._mount(made)
            if mount is not None:
                self._views.put(key, mount)
        return mount

    def open_to_anonymous(self, place: Place) -> Mount | None:
        """
        The mount that answers callers who may not know of a repository, where a format has such responses; else None.

        Callers see no difference between a repository that exists and one that does not: the mount is the repository's
        own only if the path spells its name exactly, and one of a placeholder repository in all other cases. ``place``
        is the split path.
        """
        if not all(_NAME.fullmatch(part) for part in place[:2]):
            return None
        format_ = next((each for each in self._formats.values() if each.needs_no_credentials(place[2])), None)
        if format_ is None:
            return None
        storage, name = (part.decode("ascii") for part in place[:2])
        found = self.find(place[0], place[1])
        if found is not None and found.format is format_ and found.repository.path == f"{storage}/{name}":
            return found
        placeholder = make_placeholder(NO_REPOSITORY, storage, name, format_.name)
        return Mount(repository=placeholder, format=format_, resource=self._resource(format_, placeholder))

    def _resource(self, format_: Format, repository: Repository) -> IResource:
        """The resource of a repository; of one of a format that is not loaded yet, it loads that."""
        if format_.is_loaded:
            return format_.resource(repository, self._services)
        return LateResource(Late(lambda: format_.resource(repository, self._services)), self._services.pools.cpu)

    def _mount(self, repository: Repository) -> Mount | None:
        format_ = self._formats.get(repository.format)
        if format_ is None:
            return None
        return Mount(
            repository=repository,
            format=format_,
            resource=self._resource(format_, repository),
            companions={each.name.rpartition("/")[2].encode("ascii"): mount for each, mount in self._below(repository)},
        )

    def _below(self, parent: Repository) -> Iterator[tuple[Repository, Mount]]:
        """The companions of a repository with their mounts; those of a view are views of the same time."""
        for each in self._registry.companions_of(parent):
            view = parent.view
            mount = self._mount(each if view is None else evolve(each, view=evolve(view, live=each)))
            if mount is not None:
                yield each, mount


def unknown_place(identity: Identity, entry: Entry) -> PkgrepoError:
    """The error for the repository of an entry; it repeats the caller's spelling."""
    asked = entry.asked or "/".join(part.decode("latin-1") for part in entry.place[:2])
    return unknown(identity, unquote(asked))


def _readdress(request: Request, raw_path: bytes) -> None:
    """Give a request another path; its query stays."""
    request.raw_path = request.path = raw_path
    request.uri = raw_path + request.uri[len(request.uri.partition(b"?")[0]) :]
    request.prepath, request.postpath = [], decode_parts(raw_path[1:])

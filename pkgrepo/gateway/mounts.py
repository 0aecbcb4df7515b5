"""The repository and the resource that serve a raw path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from attrs import Factory, frozen
from twisted.web.resource import IResource

from pkgrepo.auth.permissions.rules import NO_REPOSITORY, make_placeholder
from pkgrepo.gateway.format import Format
from pkgrepo.model import Repository

from .services import Services

PREFIX = b"/repositories/"

_NAME = re.compile(rb"[A-Za-z0-9_-]{1,100}")  # of storages and repositories, none of which is longer


Place = tuple[bytes, bytes, bytes]  # storage, repository and the path below it, all undecoded


def split(raw_path: bytes) -> Place | None:
    """The place of an address; None for addresses that are below no repository."""
    if not raw_path.startswith(PREFIX):
        return None
    storage, _, rest = raw_path[len(PREFIX) :].partition(b"/")
    name, _, below = rest.partition(b"/")
    return (storage, name, below) if storage and name else None


def below(raw_path: bytes, repository: Repository | None = None) -> bytes:
    """
    The path below its repository, undecoded and without the slash before it; only for paths of a mount.

    ``repository`` is given where it may be a companion, which has a longer path.
    """
    depth = 2 if repository is None else 1 + repository.path.count("/")
    return (raw_path[len(PREFIX) :].split(b"/", depth)[depth:] or [b""])[0]


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


class Mounts:
    """Finds the mount behind ``/repositories/<storage>/<repository>/...``."""

    def __init__(self, *, services: Services, formats: Mapping[str, Format]) -> None:
        self._services = services
        self._registry = services.registry
        self._formats = formats
        self._serial = -1
        self._mounts: dict[tuple[bytes, bytes], Mount] = {}

    def refresh_now(self) -> bool:
        """Whether the configuration is in memory as it is now; see L{Registry}."""
        return self._registry.refresh_now()

    async def refresh(self) -> None:
        """Read the configuration again if it may have changed; see L{Registry}."""
        await self._registry.refresh()

    def locate(self, place: Place) -> tuple[Mount | None, Place]:
        """The mount that serves a place, or None; and the place with the path below that mount."""
        mount = self.find(place[0], place[1])
        if mount is not None and mount.companions:
            segment, _, rest = place[2].partition(b"/")
            companion = mount.companions.get(segment)
            if companion is not None:
                return companion, (place[0], place[1], rest)
        return mount, place

    def find(self, storage: bytes, name: bytes) -> Mount | None:
        """The mount at ``storage/name``, as spelt in a raw path, or None."""
        if self._registry.serial != self._serial:
            self._serial = self._registry.serial
            self._mounts = {}
        mount = self._mounts.get((storage, name))
        if mount is not None:
            return mount
        repository = self._registry.find(unquote(storage.decode("latin-1")), unquote(name.decode("latin-1")))
        if repository is None or repository.parent is not None:  # a companion is reached through its parent
            return None
        # Kept under the repository's own spelling only: clients can make up any number of others.
        key = (repository.storage_name.encode("utf-8"), repository.name.encode("utf-8"))
        mount = self._mounts.get(key) or self._mount(repository)
        if mount is not None:
            self._mounts[key] = mount
        return mount

    def open_to_strangers(self, place: Place) -> Mount | None:
        """
        The mount that answers callers who may not know of a repository, where a format has such answers; else None.

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
        return Mount(repository=placeholder, format=format_, resource=format_.resource(placeholder, self._services))

    def _mount(self, repository: Repository) -> Mount | None:
        format_ = self._formats.get(repository.format)
        if format_ is None:
            return None
        return Mount(
            repository=repository,
            format=format_,
            resource=format_.resource(repository, self._services),
            companions={each.name.rpartition("/")[2].encode("ascii"): mount for each, mount in self._below(repository)},
        )

    def _below(self, parent: Repository) -> Iterator[tuple[Repository, Mount]]:
        """The companions of a repository with their mounts."""
        for each in self._registry.companions_of(parent):
            mount = self._mount(each)
            if mount is not None:
                yield each, mount

"""
The repository of an image, by the image's name.

Container clients see one server with one tree of names. The first matching rule applies:

=================  =============================================================  =======================
rule               matches if                                                     the image is
=================  =============================================================  =======================
host               the host that the client used stands for a repository          the whole name
                   (see L{pkgrepo.repositories.addresses})
prefix             the first two segments are a storage and a container           what follows them
                   repository of it, and something follows; of a stage, the
                   repository is ``<name>.stage-<id>``, since names of images
                   have no plus sign
alias              the name begins with an alias for images                       what follows it
default            there is a default repository                                  the whole name
=================  =============================================================  =======================

The default repository is the one that the setting names. With ``auto`` it is the container repository that is marked
``default``, else the only one that there is; a name that begins with a storage and is meant for a repository of it that
is not there is then no image of it.
"""

from __future__ import annotations

import re
from collections.abc import Container
from urllib.parse import unquote

from attrs import frozen

from pkgrepo.auth.permissions.format_rights import has_images, rights_of
from pkgrepo.errors import Conflict
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories

PREFIX = b"/v2/"
AUTO = "auto"
_STAGE = re.compile(r"\.(staged?-[0-9a-f-]{36})$")  # with a dot instead of the plus sign, which images' names lack


@frozen
class ImageAddress:
    """An image: its repository, and its name in there."""

    repository: Repository
    image: str


@frozen
class _Default:
    """The default repository, and the names of all storages in lower case, as of a serial of the configuration."""

    serial: int
    default: Repository | None
    storages: frozenset[str]


class ImageAddresses:
    """
    Finds the repository behind the name of an image.

    ``default`` is ``storage/name``, ``auto`` or empty. Hosts are as in L{Request.asked_host}; None stands for no
    repository.
    """

    def __init__(self, registry: Registry, *, default: str = "") -> None:
        self._registry = registry
        self._setting = default
        self._default = _Default(-1, None, frozenset())

    def find(self, host: str | None, name: str) -> ImageAddress | None:
        """The image of a name at a host, whether or not it exists; None without a repository."""
        bound = self.of_host(host)
        if bound is not None:
            return ImageAddress(bound, name)
        storage, _, rest = name.partition("/")
        repository_name, _, image = rest.partition("/")
        if image:
            repository = self._registry.find(storage, repository_name)
            if repository is None:
                repository = self._registry.find(storage, _STAGE.sub(r"+\1", repository_name))
            if repository is not None and has_images(repository) and repository.addressed:
                return ImageAddress(repository, image)
        aliased = self._registry.addresses.of_image(name)
        if aliased is not None:
            repository = self._find(aliased[0])
            return ImageAddress(repository, aliased[1]) if repository is not None and aliased[1] else None
        return self.find_default(host, name)

    def find_default(self, host: str | None, name: str) -> ImageAddress | None:
        """The image of a name whose first segments name no repository."""
        default = self.default(host)
        if default is None or (self._setting == AUTO and self._means_another(name)):
            return None
        return ImageAddress(default, name)

    def default(self, host: str | None) -> Repository | None:
        """The default repository of a host; None where there is none, or the host stands for one itself."""
        if self.of_host(host) is not None:
            return None
        return self._automatic_default().default if self._setting == AUTO else self._find(self._setting)

    @property
    def pinned_default(self) -> str:
        """The path of the repository that stays the default whatever others are added; empty without one."""
        if self._setting != AUTO:
            return self._setting
        chosen = self._automatic_default().default
        return chosen.path if chosen is not None and is_marked(chosen) else ""

    def explained_by(self, name: str) -> list[Repository]:
        """The repositories of which ``explain`` must know whether the client may know of them."""
        storage, _, rest = name.partition("/")
        found = self._find(f"{storage}/{rest}")
        return self._containers() if self._setting == AUTO else [] if found is None else [found]

    def explain(self, name: str, visible: Container[int]) -> str:
        """Why nothing was found, as a sentence for a caller who may know of the ``visible`` repositories."""
        storage, _, rest = name.partition("/")
        repository = self._registry.find(storage, rest)
        if repository is not None and has_images(repository) and repository.id in visible:
            return f"the name of the image is missing after {name}"
        sentence = f"there is no container repository at {name}; an image is called storage/repository/image here"
        if self._setting == AUTO and sum(each.id in visible for each in self._containers()) > 1:
            sentence += ", unless one repository is marked as the default"
        return sentence

    def of_host(self, host: str | None) -> Repository | None:
        """The container repository that a host stands for, or None."""
        path = None if host is None else self._registry.addresses.of_host(host)
        return None if path is None else self._find(path)

    def listed(self, host: str | None) -> list[tuple[str, Repository]]:
        """The repositories that a host shows, each with what stands before its images' names, by that."""
        bound = self.of_host(host)
        if bound is not None:
            return [("", bound)]
        # clients only take lower-case names, and any case is found
        every = [(f"{each.path.lower()}/", each) for each in self._containers()]
        return sorted(every, key=lambda item: item[0])

    def of_request(self, request: Request) -> Repository | None:
        """
        The repository of a read, for cached responses; None also for a HEAD of a digest.

        The handler of such a HEAD leases what is there to the client, which need not upload it, and stores that lease.
        """
        raw = request.raw_path
        if not raw.startswith(PREFIX) or (request.method == b"HEAD" and _may_name_digest(raw)):
            return None
        found = self.find(request.asked_host, unquote(raw[len(PREFIX) :].decode("latin-1")))
        return None if found is None else found.repository

    def _automatic_default(self) -> _Default:
        """The default repository with the setting ``auto``."""
        serial = self._registry.serial
        if serial != self._default.serial:
            every = self._containers()
            candidates = [each for each in every if is_marked(each)] or every
            storages = frozenset(each.name.casefold() for each in self._registry.storages())
            self._default = _Default(serial, candidates[0] if len(candidates) == 1 else None, storages)
        return self._default

    def _containers(self) -> list[Repository]:
        return [each for each in self._registry.listed() if has_images(each)]

    def _means_another(self, name: str) -> bool:
        """Whether a name begins with a storage, and is meant for a repository or image that does not exist there."""
        storage, _, rest = name.partition("/")
        if storage.casefold() not in self._automatic_default().storages:
            return False
        return "/" in rest or self._find(f"{storage}/{rest}") is not None

    def _find(self, path: str) -> Repository | None:
        storage, _, name = path.partition("/")
        found = self._registry.find(storage, name) if name else None
        return found if found is not None and has_images(found) else None


def is_marked(repository: Repository) -> bool:
    """Whether a container repository is to be the default."""
    return bool(repository.settings.get("default"))


def check_hides_nothing(r: Reader, default: str, format_name: str, storage: str, name: str) -> None:
    """
    Let a repository be at ``storage/name``, which comes before the default repository when images are looked up.

    :raises Conflict: images of the default repository would be found no more
    """
    if not rights_of(format_name).images or not default:
        return
    prefix = f"{storage}/{name}/".casefold()
    home = repositories.find_by_path(r, *default.casefold().split("/", 1)) if "/" in default else None
    if home is None or prefix == f"{home.path}/".casefold():
        return
    found = packages.list_packages(r, home.id, after=prefix, limit=1)
    if found and found[0].key.startswith(prefix):
        raise Conflict(
            f"the default container repository {home.path} has the image {found[0].key}, which a container repository "
            f"called {name!r} in storage {storage!r} would hide; choose another name"
        )


def _may_name_digest(raw: bytes) -> bool:
    last = raw.rpartition(b"/")[2]
    return b":" in last or b"%" in last

"""A package format: its protocol, and nothing of disks, SQL or sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import define, field, fields, frozen
from twisted.application.service import IService
from twisted.web.resource import IResource

from pkgrepo.auth.permissions.format_rights import FormatRights
from pkgrepo.concurrency.late import Late
from pkgrepo.concurrency.lru import SizedCache
from pkgrepo.gateway.client_documents import ClientDocuments
from pkgrepo.gateway.imported.kinds import Imported
from pkgrepo.gateway.mirrored.places import Mirrored
from pkgrepo.gateway.publishing.pipelines import RootExchange
from pkgrepo.gateway.publishing.uploads import Uploads
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.model import Repository
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.checks import Authorize, Probe
from pkgrepo.proxy.explaining import Explanation
from pkgrepo.proxy.format import Proxied
from pkgrepo.replication.copies import Copies
from pkgrepo.repositories.format import Companion, Ecosystem, PackageUrls, StoredFormat
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.repositories.snippets import Snippet

from .services import Context, Services


class Setup(Protocol):
    """Snippets for setting up clients for the repository with a URL."""

    def __call__(self, url: str, /, *, publishes: bool) -> Sequence[Snippet]:
        """``publishes`` tells whether clients can publish there."""


class InstallArtifact(Protocol):
    """Commands for what an image of a type holds."""

    def __call__(self, type_: str, url: str, name: str, version: str, /, *, push: bool) -> Sequence[Snippet]:
        """
        None for a type that is not known. ``url`` is that of the repository, ``name`` and ``version`` those of the
        image; with ``push`` they are those of a package of which an image can be made.
        """


class Explain(Protocol):
    """Explains how a package, and one version of it if that is given, is served to readers."""

    def __call__(
        self, services: Services, repository: Repository, package_key: str, version: str | None, *, revalidate: bool
    ) -> Awaitable[Explanation]:
        """With ``revalidate`` what is kept is confirmed. :raises Invalid: the version is malformed"""


class Refuse(Protocol):
    """Tells why a version of a hosted repository, or a tag or digest of an image, is not served."""

    def __call__(
        self, services: Services, repository: Repository, package_key: str, version: str, asked: Repository
    ) -> Awaitable[RuleRefused | None]:
        """The error that clients get of ``asked``, the repository or a virtual one around it; None if it is served."""


class ChangeTag(Protocol):
    """Lets a tag of a package stand for a version, or with None for none, as a request of a client would."""

    def __call__(
        self, context: Context[Any], request: Request, package_key: str, tag: str, version: str | None, /
    ) -> Awaitable[None]:
        """The context is that of the repository that was asked. :raises PkgrepoError, Refusal: as for clients"""


@define
class KeptImage:
    """
    The digest of an image, and how many of the manifests and blobs that it consists of were fetched, of ``size`` bytes
    together, and were there.
    """

    digest: str = ""
    fetched: int = 0
    present: int = 0
    size: int = 0

    def count(self, size: int, *, fetched: bool) -> None:
        """Count a manifest or a blob."""
        self.fetched += fetched
        self.present += not fetched
        self.size += size if fetched else 0


class KeepImage(Protocol):
    """Has a repository fetch what it does not keep of an image, as a client that pulls it would."""

    def __call__(
        self, services: Services, repository: Repository, image: str, reference: str, platforms: Sequence[str], /
    ) -> Awaitable[KeptImage]:
        """``reference`` is a tag or a digest; without ``platforms`` all are fetched. :raises PkgrepoError: it fails"""


@frozen(kw_only=True)
class Look:
    """
    How the console shows a format.

    ``icon`` are shapes of SVG, drawn with strokes on a grid of 24; its colours are ``light`` on a light ground and
    ``dark`` on a dark one, with a contrast of at least 4.5 to 1; empty for that of quiet text. ``programs`` are those
    that its users know it by; ``starter`` is the name of its repositories in the starter set, empty for none. The page
    of a version shows the texts of files of its archive that are ``inside``, by their paths in its one folder; of a
    folder, with a slash at its end, it lists the files.
    """

    icon: str = '<path d="m12 3 8.5 4.5v9L12 21l-8.5-4.5v-9zM3.5 7.5 12 12l8.5-4.5M12 12v9"/>'
    light: str = ""
    dark: str = ""
    programs: str = ""
    starter: str = ""
    inside: tuple[str, ...] = ()


@frozen(kw_only=True, eq=False)
class FormatFacts:
    """
    What is asked of every format, also of one that no repository has; each is a field of L{Format}.

    A module with these facts imports nothing of the format but its names: functions that need more import it when they
    are called.
    """

    name: str
    aliases: tuple[str, ...] = ()
    look: Look = Look()
    rights: FormatRights = field(factory=FormatRights)
    package_urls: PackageUrls = field(factory=PackageUrls)
    ecosystem: Ecosystem | None = None
    companion: Companion | None = None
    needs_no_credentials: Callable[[bytes], bool] = lambda _path: False
    exchanges: tuple[str, ...] = ()
    branch_names: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, Any]:
        """The facts by the names of the fields."""
        return {each.name: getattr(self, each.name) for each in fields(FormatFacts)}


@frozen(kw_only=True, eq=False)
class Format(StoredFormat):
    """
    A package format with all that it serves. What is None or empty, a format does not have.

    ``resource`` makes the resource that serves the paths of a repository. ``needs_no_credentials`` tells whether
    callers without credentials may reach a path (raw, below a repository), because it is for logging in. The responses
    must not reveal whether the repository exists: it may be one that does not, in which no action is allowed.

    ``look`` is how the console shows it.

    ``setup`` are snippets for setting up clients for a repository, by its URL without a slash at the end; ``install``
    those for installing a package from there, by name and version. An image may hold a package of another format: its
    ``artifact`` is the type of such an image, and a format of images has commands for some types, ``install_artifact``,
    and to make one of a package. Who makes a token is shown how ``token_clients`` use
    it: by their setup, or by the ``logins`` at an address of the server, if there are any. ``uploads`` are the files
    that it takes from forms, ``client_documents`` those in which clients find files.
    ``change_tag`` is for a format whose versions have tags.

    ``address`` is how addresses of upstreams look. ``probes`` are cheap requests that check the upstream with a URL:
    addresses, and the statuses of a working upstream. They are tried in order, since some upstreams lack the first
    ones; for ``authorize`` see
    L{pkgrepo.proxy.checks.check_routes}. ``explain`` and ``refusal`` are for a format that decides itself what it
    serves; ``keep_image`` and ``copies`` are for one whose packages are images, the latter for those of a repository
    that is followed.

    ``branches`` are resources at the root of the server, by the first segment of the path or by the first two with a
    slash between (``branch_names``); they are given the resource that issues bearer tokens. ``root_exchanges`` are
    addresses at the root where pipelines get tokens, below the segments ``exchanges``. ``ping_responses``, by raw path,
    go to every caller with valid credentials, and are sent from memory before routing. ``background`` makes
    services that run in one process of the server at a time, ``running`` those that run in each process. ``caches``
    are shown by ``/metrics`` under their names. ``check_settings`` raises ``Invalid`` at the start for a setting
    that cannot be used. A format that is ``dated`` has views of the past.
    """

    resource: Callable[[Repository, Services], IResource]
    needs_no_credentials: Callable[[bytes], bool] = lambda _path: False
    look: Look = Look()
    setup: Setup
    token_clients: tuple[str, ...] = ()
    logins: Callable[[str], Sequence[Snippet]] = lambda _base_url: ()
    install: Callable[[str, str, str], Sequence[Snippet]]
    artifact: str = ""
    install_artifact: InstallArtifact = lambda _type, _url, _name, _version, *, push: ()  # noqa: ARG005 - of the protocol
    uploads: Uploads | None = None
    client_documents: ClientDocuments = field(factory=ClientDocuments)
    change_tag: ChangeTag | None = None
    proxied: Proxied | None = None
    mirrored: Mirrored
    imported: Imported
    address: AddressShape = field(factory=AddressShape)
    probes: Callable[[str], Sequence[Probe]] = lambda url: ((f"{url}/", (200,)),)
    authorize: Authorize | None = None
    explain: Explain | None = None
    refusal: Refuse | None = None
    keep_image: KeepImage | None = None
    copies: Callable[[Services], Copies] | None = None
    branches: Callable[[Services, IResource], Mapping[str, IResource]] = lambda _services, _tokens: {}
    branch_names: tuple[str, ...] = ()
    root_exchanges: Sequence[RootExchange] = ()
    exchanges: tuple[str, ...] = ()
    ping_responses: Mapping[bytes, Response] = field(factory=dict)
    background: Callable[[Services, Any], Sequence[IService]] = lambda _services, _reactor: ()
    running: Callable[[], Sequence[IService]] = tuple
    caches: Mapping[str, SizedCache[Any]] = field(factory=dict)
    check_settings: Callable[[], None] = lambda: None
    dated: bool = False


class LateFormat(Format):
    """
    A format of which only the facts are there, until another field is used, or it is loaded.

    ``make`` makes the whole format, which imports its modules. ``loaded`` is then called with it, in any thread.
    """

    def __init__(
        self, facts: FormatFacts, make: Callable[[], Format], loaded: Callable[[Format], None] = lambda _: None
    ) -> None:
        def complete() -> None:
            made = make()
            self._set({each.name: getattr(made, each.name) for each in fields(Format)})
            loaded(self)

        self._late: Late[None]
        self._set({**facts.fields, "_late": Late(complete)})

    @property
    def is_loaded(self) -> bool:
        """Whether all of it is there."""
        return self._late.is_made

    def load(self) -> None:
        """Have all of it there."""
        self._late()

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS:
            raise AttributeError(name)
        self._late()
        return object.__getattribute__(self, name)  # an AttributeError, if the whole format has none either

    def _set(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)  # the slots of a frozen value


_FIELDS = frozenset(each.name for each in fields(Format))

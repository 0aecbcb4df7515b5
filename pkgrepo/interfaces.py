"""
The interfaces between the packages of the program.

Every implementation is checked with ``verifyObject`` and passes the contract suite of its interface in
``tests/contracts``. As zope.interface requires, methods are declared without ``self``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from twisted.internet.interfaces import IConsumer
from zope.interface import Attribute, Interface

if TYPE_CHECKING:
    from pkgrepo.model import Action, BlobInfo, Identity, ReadLimits, Repository, UpstreamHealth

T = TypeVar("T")
P = ParamSpec("P")
Value = int | str | bytes | float | None
Row = tuple[Any, ...]


class NotNow(Enum):
    """The type of ``NOT_NOW``, which is distinct from every result of a query, including None."""

    NOT_NOW = "not now"


NOT_NOW: Final = NotNow.NOT_NOW  # the answer needs waiting: use ``look``


class IBlobStore(Interface):
    """
    Immutable blobs on one storage.

    A blob is visible completely or not at all. A locator names one stored copy and is never reused, so that deleting an
    old copy never removes a new copy of the same content.
    """

    def begin(expect_size: int | None = None, algorithms: Sequence[str] = (), limit: int | None = None) -> IBlobUpload:
        """
        Start receiving a blob; nothing is visible until its ``commit``.

        ``expect_size`` (bytes) reserves space, so that a full disk is detected before the first byte. ``algorithms``
        are ``hashlib`` names, or ``blake2b_256``, computed in addition to sha256. Writing more than ``limit`` bytes
        raises ``TooLarge``.

        :raises StorageFull: no space for ``expect_size``, or the free space is below the low-water mark
        """

    def resume(upload_id: str, state: bytes) -> Awaitable[IBlobUpload]:
        """
        Continue a suspended upload, on any worker; the caller ensures that only one does so at a time.

        Bytes beyond the offset in ``state`` were never acknowledged and are discarded.

        :raises BlobMissing: the upload does not exist, or the state is not of this store
        """

    def commit_together(uploads: Sequence[IBlobUpload]) -> Awaitable[None]:
        """
        Commit several sealed uploads of this store with shared fsyncs: all of them or none.

        :raises StorageFull: or ``StorageFailed``
        """

    def open(locator: str) -> IBlob:
        """
        A stored blob, for reading.

        :raises BlobMissing: nothing is stored under this locator
        """

    def stat(locator: str) -> Awaitable[tuple[int, datetime] | None]:
        """Size in bytes and time of commit (aware UTC), or None when absent."""

    def delete(locator: str) -> Awaitable[None]:
        """Delete the copy; no error if it is absent. Open readers can finish."""

    def scan(after: str = "", limit: int = 1000) -> Awaitable[Sequence[tuple[str, int, datetime]]]:
        """Up to ``limit`` copies as (locator, size, time of commit), ordered by locator, from after ``after``."""

    def sweep_uploads(older_than: datetime, keep: Iterable[str]) -> Awaitable[int]:
        """Remove unfinished uploads last modified before ``older_than`` and not in ``keep``. Returns how many."""

    def capacity() -> tuple[int, int]:
        """Free and total bytes of the storage."""


class IBlobUpload(IConsumer):
    """
    A blob that is being received.

    It is an async context manager: leaving it without ``commit`` or ``suspend`` removes all data; after a crash the
    next start removes it. Digests are computed while bytes arrive. ``write`` takes bytes of any size and may be
    called without waiting; ``registerProducer`` and ``drained`` provide back-pressure.
    """

    id = Attribute("the upload's name, an opaque str for ``resume``")
    offset = Attribute("bytes received so far, an int")
    data = Attribute("the sealed bytes if they are few, else None")
    readable = Attribute(
        "how many bytes, from the first on, a ``descriptor`` can read; grows while bytes arrive, an int"
    )

    def __aenter__() -> Awaitable[IBlobUpload]:
        """The upload itself."""

    def __aexit__(  # noqa: PLE0302 - interfaces have no self
        kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Awaitable[None]:
        """``abort``, which does nothing after a ``commit`` or ``suspend``."""

    def write(data: bytes) -> None:
        """Add the next bytes. :raises TooLarge: the limit is exceeded"""

    def share(on_progress: Callable[[], None]) -> None:
        """
        Let others read the bytes while they arrive: they become ``readable`` soon after they were written.

        ``on_progress`` is called when ``readable`` has grown, until ``seal`` is called. Which bytes the readers get
        before the digests are known is for the caller to decide.
        """

    def drained() -> Awaitable[None]:
        """
        Wait until few enough bytes are buffered to accept more.

        :raises StorageFull: the disk is full; :raises StorageFailed: the device failed
        """

    def seal(expected: Mapping[str, str] | None = None, size: int | None = None) -> Awaitable[BlobInfo]:
        """
        Accept no more bytes, and return the blob that ``commit`` will make. Nothing is visible or durable yet.

        ``expected`` maps algorithm names to lower-case hex; each is checked.

        :raises DigestMismatch: a digest differs; :raises SizeMismatch: ``size`` differs
        :raises StorageFull: or ``StorageFailed``; :raises ValueError: ``expected`` names an algorithm not in ``begin``
        """

    def descriptor() -> int | None:
        """
        A new file descriptor of the sealed bytes, which the caller closes; None if the store has no files.

        Before ``seal`` it is one of the growing file, once ``readable`` is not 0. It stays valid in any case.

        :raises StorageFailed: there is none
        """

    def commit(expected: Mapping[str, str] | None = None, size: int | None = None) -> Awaitable[BlobInfo]:
        """
        Make the blob durable and visible, or leave nothing. It is sealed first if it was not, see ``seal``.

        :raises StorageFull: or ``StorageFailed``
        """

    def suspend() -> Awaitable[bytes]:
        """Make the received bytes durable and return the state (at most 4 KiB) for ``resume``."""

    def abort() -> Awaitable[None]:
        """Remove all data; may be called at any time and more than once."""


class IBlob(Interface):
    """
    One stored copy, opened for reading.

    It stays readable after the copy is deleted. It keeps its file open until the last reference is dropped, so do not
    keep it for long.
    """

    size = Attribute("bytes, an int")

    def descriptor() -> int | None:
        """A new read-only file descriptor, which the caller closes; None if the store has no files."""

    def deliver(consumer: IConsumer, start: int, end: int) -> Awaitable[None]:
        """
        Push bytes ``start`` to ``end`` (exclusive) to the consumer as a push producer; done when all were written.

        :raises StorageFailed: they cannot be read; the response must not look complete
        :raises CancelledError: the consumer stopped the delivery
        """

    def read(start: int, count: int) -> Awaitable[bytes]:
        """At most ``count`` bytes from ``start``; fewer only at the end."""


class Reader(Protocol):
    """The argument of a query: one consistent snapshot of the catalog."""

    def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """The first row, or None."""

    def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """All rows; the SQL limits their number."""


class Transaction(Reader, Protocol):
    """The argument of a write command: it sees its own writes; others see all of them or none."""

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one statement. Returns the number of changed rows."""

    def insert(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one INSERT that returns the new row's integer key; that key."""


class ICatalog(Interface):
    """
    The database: packages, files, users, permissions, events.

    Queries and commands are functions over a ``Reader`` or a ``Transaction`` (see ``pkgrepo.storage.catalog``), so that
    every engine runs the same ones.
    """

    def generation() -> int:
        """A number that changes when a commit of any process becomes visible. It is local and costs microseconds."""

    def moment() -> AbstractContextManager[int]:
        """
        A ``with`` block, which must not await, in which ``generation`` is read once: several checks for changes share
        the cost. Its value is the generation. Queries in the block may see later commits.
        """

    def look(query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """
        Run a query of a few indexed look-ups.

        An embedded engine answers at once, without a thread and without a reactor turn; another engine when its reply
        arrives. The caller must expect other events in between.
        """

    def peek(query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T | NotNow:
        """
        Run such a query now, in the calling (reactor) thread; ``NOT_NOW`` from an engine that would have to wait.

        Only for callers that can then await ``look`` instead.
        """

    def scan(query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Run a longer query on a reader thread."""

    def write(command: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """
        Run a command in a transaction. Returns its result once it is durable.

        If the command raises, it changes nothing and the error is raised here; other commands are not affected.
        """


class IUpstream(Interface):
    """The client of one route of a proxy repository."""

    name = Attribute("the route's name, a str")
    url = Attribute("the route's URL without a slash at its end, a str")

    def open(
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        limits: ReadLimits | None = None,
        decode: bool = False,
        entrust: bool = False,
        retry: bool = True,
    ) -> AbstractAsyncContextManager[IUpstreamResponse]:
        """
        Send a GET or HEAD, or a POST with a ``body``; the value of the ``async with`` block is the answer.

        A POST must be a question that changes nothing, since it may be sent more than once. It is not redirected.

        ``url`` is absolute, or a path as on the wire (with a query, if any) below the route's URL. The credentials of
        the route go only to its own scheme, host and port, and with ``entrust`` to those of ``url``, which the route's
        own host must have named for that; an Authorization field in ``headers`` replaces them.
        Redirects are followed, and with ``retry`` requests are tried again after failures that a second try may mend.

        ``limits`` defaults to those of documents. With ``decode`` the answer may be compressed in transfer.

        Any status below 500 is an answer, except 429. Leaving the block before the end of the body closes the
        connection.

        :raises Invalid: ``url`` is no http or https URL
        :raises UpstreamUnavailable: it cannot be reached, or failed so often that it is not asked at the moment
        :raises UpstreamTimeout: it was too slow; :raises UpstreamLimited: it wants no requests for a while
        :raises UpstreamForbiddenAddress: the URL, or a redirect, leads to an address that is not allowed
        :raises UpstreamTooLarge: the announced length exceeds ``limits``
        :raises UpstreamFailed: it answered with another error, or not in HTTP
        """

    def health() -> UpstreamHealth:
        """What is known about the route's own host."""


class IUpstreamResponse(Interface):
    """An answer of an upstream: its head, and its body, which is read once."""

    status = Attribute("the status code, an int")
    headers = Attribute("an object whose ``get(name: str) -> str | None`` joins fields of one name with a comma")
    url = Attribute("the URL that answered, after redirects, without its query, which may hold a signature; a str")
    length = Attribute("bytes of the body, for HEAD those that GET would send; None if unknown or compressed")
    framed = Attribute("False if the body ends with the connection, so that nobody can tell whether it is complete")

    def chunks() -> AsyncIterator[bytes]:
        """
        The body, decompressed if it was compressed in transfer. Reading slowly slows the upstream down.

        :raises UpstreamTruncated: the connection ended early; :raises UpstreamTimeout: no more bytes arrived in time
        :raises UpstreamTooLarge: it exceeds the limits; :raises UpstreamFailed: it cannot be decompressed
        """

    def read() -> Awaitable[bytes]:
        """All of the body, for documents. It raises what ``chunks`` raises."""


class IAuthenticator(Interface):
    """Authentication: credentials in any form that clients send -> identity."""

    def recall(header: bytes) -> Identity | None:
        """The identity behind a recently verified Authorization header, without waiting; else None."""

    def authenticate(
        header: bytes | None, address: str, client: str = "", *, counted: bool = True
    ) -> Awaitable[Identity]:
        """
        The identity behind an Authorization header value (None: anonymous) from an address; ``client`` is its
        User-Agent. ``counted`` records a use of the token; pass False when the same request is authenticated again.

        :raises AuthenticationFailed: wrong credentials; :raises TooManyAttempts: too many wrong ones recently
        """


class IAuthorizer(Interface):
    """The one permission check, used by all formats, the API and search."""

    def may_now(identity: Identity, action: Action, repository: Repository, package: str | None = None) -> bool | None:
        """The result of ``may`` if it is known without waiting, else None."""

    def may(identity: Identity, action: Action, repository: Repository, package: str | None = None) -> Awaitable[bool]:
        """Whether the identity may do this now. ``package`` (a key) restricts the question to one package."""

    def may_each(
        identity: Identity, questions: Sequence[tuple[Action, Repository, str | None]]
    ) -> Awaitable[list[bool]]:
        """The results of ``may`` for many questions, in order, with at most one query."""

    def knows_now(identity: Identity, repository: Repository) -> bool | None:
        """The result of ``knows`` if it is known without waiting, else None."""

    def knows(identity: Identity, repository: Repository) -> Awaitable[bool]:
        """Whether the identity may know that the repository exists."""

    def explain(
        identity: Identity, action: Action, repository: Repository, package: str | None = None
    ) -> Awaitable[str]:
        """The sentence of a refusal: who, what, and the rule that decided."""

    def check_project_member(identity: Identity, repository: Repository, package: str) -> Awaitable[bool]:
        """
        Check the rule ``must_be_project_member``.

        :raises Forbidden: with the project that the caller must be a member of, or that there is none
        """


class IFormat(Interface):
    """A package format: its protocol, and nothing of disks, SQL or sockets."""

    name = Attribute("the name in the API, e.g. ``python``")
    aliases = Attribute("other spellings that the API takes, a tuple of str")

    def validate(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """
        Validate a repository's configuration and fill in defaults. Returns the fixed part and the settings.

        :raises Invalid: with the JSON pointer of the wrong value
        """

    def check_place(storage: str, repository: str) -> None:
        """
        Check the names of a new repository and its storage.

        :raises Invalid: clients could not address it; with the JSON pointer ``/name`` or ``/storage``
        """

    def schema() -> Mapping[str, Any]:
        """JSON Schema 2020-12 of the repository configuration."""

    def warnings(repository: Repository) -> Sequence[str]:
        """Sentences about surprising effects of the repository's configuration; usually none."""

    def resource(repository: Repository, services: Any) -> Any:
        """
        The Klein application's resource (an ``IResource``) that serves this repository's paths.

        ``services`` are the shared mechanisms, see ``pkgrepo.gateway.services``.
        """

    def index(index: Any, change: Any) -> None:
        """Bring a package's documents up to date: an ``Indexer``, see ``pkgrepo.repositories.publish.index``."""

    def package_key(name: str) -> str:
        """The normalised form of a package name. :raises Invalid: it is no package name"""

    def version_key(text: str) -> str:
        """The normalised form of a version. :raises Invalid: it is no version"""

    def readable_path(path: str) -> str:
        """The path in the readable layout for a file's public path, relative to the repository's folder."""

    def needs_no_credentials(path: bytes) -> bool:
        """
        Whether callers without credentials may reach this path (raw, below a repository), because it is for logging in.

        Its answers must not reveal whether the repository exists: the resource may be one for a repository that does
        not exist, in which nobody may do anything.
        """

    def setup(base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """Snippets for setting up clients: ``client``, ``title``, ``file``, ``language`` and ``text`` each."""


class IConfiguredFormat(Interface):
    """A format whose server settings are checked at the start. Provided beside ``IFormat``."""

    def check_settings() -> None:
        """Check the settings. :raises Invalid: one cannot be used, and the server does not start"""


class IRootFormat(Interface):
    """A format that also answers at the root of the server. Provided beside ``IFormat``."""

    def branches(services: Any, token_service: Any) -> Mapping[str, Any]:
        """
        Resources (``IResource``) by the first segment of the path.

        ``services`` are those of ``IFormat.resource``. ``token_service`` is the resource that issues bearer tokens, for
        mounting it at a further address.
        """

    def ping_answers() -> Mapping[bytes, Any]:
        """
        Answers (``Answer``) to the requests by which clients check their credentials, by raw path.

        Each goes to every caller with valid credentials, and is therefore sent from memory before routing.
        """


class IBackgroundFormat(Interface):
    """A format that works in the background. Provided beside ``IFormat``."""

    def background_services(services: Any, reactor: Any) -> Sequence[Any]:
        """New Twisted services (``IService``), which run as long as the server does."""


class ICachingFormat(Interface):
    """A format with caches in memory whose figures ``/metrics`` shows. Provided beside ``IFormat``."""

    def caches() -> Mapping[str, Any]:
        """The caches (``ResponseCache``), by the name that the metrics give them."""


class IIndexedFormat(Interface):
    """
    A format whose packages have index documents that are joined from fragments. Provided beside ``IFormat``.

    A document has one or more forms, and can be merged from the packages of several repositories.
    """

    def kinds(form: str) -> Sequence[str]:
        """The kinds of fragments that the form of a document is joined from."""

    def read_parts(reader: Reader, repository_id: int, key: str, form: str) -> Any:
        """
        What a hosted repository has of a package, for a form, and the package: (``MemberParts``, ``Package``).

        :raises NotFound: no such package
        """

    def splice(key: str, form: str, serial: int, members: Sequence[Any]) -> Any:
        """
        A document (``Spliced``) from the ``MemberParts`` of one or more repositories, the most important one first.

        ``serial`` grows with each change of the document.
        """

    def latest(key: str, members: Sequence[Any]) -> Any:
        """
        The latest version of a package and why, from its ``MemberParts`` in ``latest_form``: a ``Latest``, or None.

        It is found as for the documents.
        """

    latest_form = Attribute("The form of documents that ``latest`` needs")


class IProxiedFormat(IIndexedFormat):
    """An indexed format whose packages can come from upstreams."""

    def document_request(key: str) -> Any:
        """How upstreams are asked for a package: a ``DocumentRequest``."""

    def make_release(file: Any, staged: Any, blob: BlobInfo, pools: Any) -> Awaitable[Any]:
        """
        The ``Release`` by which a file from an upstream (``RemoteFile``) is kept, and the ``Indexer`` for it.

        Its bytes are ``blob``, which is ``staged`` and has the digests that the upstream announced; ``pools`` are
        threads for reading it.

        :raises Invalid: it is no file of this package
        """


class IProbedFormat(Interface):
    """A format that knows a cheap request for checking an upstream. Provided beside ``IFormat``."""

    def probes(url: str) -> Sequence[tuple[str, Sequence[int]]]:
        """
        URLs for the URL of a route, and the statuses with which a working upstream answers a GET.

        They are tried in order, since some upstreams do not have the first ones; at least one is returned.
        """


class IImageFormat(Interface):
    """A format whose packages are images: manifests, tags and blobs. Provided beside ``IFormat``."""

    def signature_keys(repository: Repository) -> Sequence[str] | None:
        """Ids of the keys whose signatures make images visible to readers; None where no signature is needed."""

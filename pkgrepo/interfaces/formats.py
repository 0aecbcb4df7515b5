"""Package formats: ``IFormat``, and what a format may provide beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zope.interface import Attribute, Interface

from .catalog import Reader, Transaction

if TYPE_CHECKING:
    from pkgrepo.model import BlobInfo, Package, Repository, VersionAdvisory


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

    def readable_folder(package_key: str) -> str:
        """The folder of a package in the readable layout, relative to the repository's folder."""

    def readable_places(package_key: str, version: str) -> Sequence[str]:
        """
        All places of a version's files that are not below its package's folder, relative to the repository's folder.

        ``version`` is the text of the version, which need not exist any more: what is at these places and not of the
        version is removed.
        """

    readable_places_vary = Attribute(
        "whether files of a version may also be at places outside of its package's folder that its name does not tell;"
        " they are found by its sidecar then"
    )

    def needs_no_credentials(path: bytes) -> bool:
        """
        Whether callers without credentials may reach this path (raw, below a repository), because it is for logging in.

        Its answers must not reveal whether the repository exists: the resource may be one for a repository that does
        not exist, in which nobody may do anything.
        """

    def setup(base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """Snippets for setting up clients: ``client``, ``title``, ``file``, ``language`` and ``text`` each."""

    def install(base_url: str, repository: Repository, name: str, version: str) -> Sequence[Mapping[str, str]]:
        """The same for installing a version of a package with clients that are set up; both exist."""


class IConfiguredFormat(Interface):
    """A format whose server settings are checked at the start. Provided beside ``IFormat``."""

    def check_settings() -> None:
        """Check the settings. :raises Invalid: one cannot be used, and the server does not start"""


class IRootFormat(Interface):
    """A format that also answers at the root of the server. Provided beside ``IFormat``."""

    def branches(services: Any, token_service: Any) -> Mapping[str, Any]:
        """
        Resources (``IResource``) by the first segment of the path, or by the first two with a slash between.

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
        """New Twisted services (``IService``), which run in one process of the server at a time."""


class IWorkingFormat(Interface):
    """A format whose work for clients goes on when they have left. Provided beside ``IFormat``."""

    def process_services() -> Sequence[Any]:
        """New Twisted services (``IService``), which run in each process as long as it serves."""


class ICachingFormat(Interface):
    """A format with caches in memory whose figures ``/metrics`` shows. Provided beside ``IFormat``."""

    def caches() -> Mapping[str, Any]:
        """The caches (``ResponseCache``), by the name that the metrics give them."""


class IIndexedFormat(Interface):
    """
    A format whose packages have versions in index documents made of fragments. Provided beside ``IFormat``.

    A document has one or more forms, and can be merged from the packages of several repositories.
    """

    def package_of(key: str) -> str:
        """The key of the package that the document with a key is of; a package may have several documents."""

    def document_of(package_key: str, path: str) -> str:
        """The key of the document that lists the file of a package at a path."""

    def kinds(form: str) -> Sequence[str]:
        """The kinds of fragments that the form of a document is joined from."""

    def read_parts(reader: Reader, repository_id: int, key: str, form: str) -> Any:
        """
        What a hosted repository has of a package, for a form, and the package: (``MemberParts``, ``Package``).

        :raises NotFound: no such package
        """

    def latest(key: str, members: Sequence[Any]) -> Any:
        """
        The latest version of a package and why, from its ``MemberParts`` in ``latest_form``: a ``Latest``, or None.

        It is found as for the documents.
        """

    latest_form = Attribute("The form of documents that ``latest`` needs")


class ISplicedFormat(IIndexedFormat):
    """An indexed format whose clients ask for the documents of packages."""

    def splice(key: str, form: str, serial: int, members: Sequence[Any]) -> Any:
        """
        A document (``Spliced``) from the ``MemberParts`` of one or more repositories, the most important one first.

        ``serial`` grows with each change of the document.
        """


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


class IContainingFormat(Interface):
    """A proxied format some of whose files are also in others. Provided beside ``IProxiedFormat``."""

    def container_of(file: Any) -> Any:
        """The ``FileSource`` of the file in which a file of an upstream (``RemoteFile``) is; None if it is in none."""

    def read_out(container: Any, file: Any) -> bytes:
        """
        The bytes of a ``RemoteFile``, of its container (an ``archives.source.Source``), which may lack parts. Blocks.

        :raises PartMissing: one that is needed; :raises Invalid: it is not in there
        """


class IRestorableFormat(Interface):
    """A proxied format whose sidecars suffice to serve what is kept. Provided beside ``IProxiedFormat``."""

    def restore_documents(reader: Reader, package: Package) -> Sequence[tuple[Any, bytes]]:
        """
        The documents of a package of a proxy, made of what is kept of it: each an ``UpstreamDocument``, and its parts.

        There are none if nothing is kept from which they can be made.

        :raises Invalid: one would be too large
        """


class IRestorableListsFormat(Interface):
    """A proxied format of which the same is true for documents about many packages. Provided like the former."""

    def restore_lists(reader: Reader, repository: Repository) -> Sequence[tuple[Any, bytes]]:
        """The documents of a proxy that are about no single package, see L{IRestorableFormat.restore_documents}."""


class IAddressedFormat(IProxiedFormat):
    """A proxied format whose files are asked of upstreams by their paths, whether or not a document lists them."""

    def file_request(key: str, path: str) -> Any:
        """
        How upstreams are asked for the file of a package at a path: a ``FileRequest``.

        The key is empty for a file that belongs to no package.

        :raises NotFound: no upstream is asked for it
        """


class IProbedFormat(Interface):
    """A format that knows a cheap request for checking an upstream. Provided beside ``IFormat``."""

    def probes(url: str) -> Sequence[tuple[str, Sequence[int]]]:
        """
        URLs for the URL of a route, and the statuses with which a working upstream answers a GET.

        They are tried in order, since some upstreams do not have the first ones; at least one is returned.
        """


class ICompanionFormat(Interface):
    """A format whose repositories can belong to repositories of other formats. Provided beside ``IFormat``."""

    companion_of = Attribute("the names of these formats, a tuple of str")
    segment = Attribute("the path segment below the address of the other repository, also the last one of its name")

    def companion_config(parent: Repository, companion: Callable[[str], str | None]) -> Mapping[str, Any] | None:
        """
        The configuration of the companion of a repository of another format; None if it gets none.

        ``companion`` finds the public id of the companion of a repository, by the public id of that.
        """


class ICompactedFormat(Interface):
    """A format with lists that grow with each change, also when something is removed. Provided beside ``IFormat``."""

    def compact(tx: Transaction, repository: Repository, now_ms: int) -> None:
        """Write the lists of a hosted repository anew, with what is there now alone: a write command."""


class IAdvisedFormat(Interface):
    """A format that knows of vulnerabilities of its packages. Provided beside ``IFormat``."""

    def find_advisories(
        package_key: str, version: str, pools: Any, clock: Any
    ) -> Awaitable[Sequence[VersionAdvisory] | None]:
        """
        The known vulnerabilities of a version, by its text, in no order; None if the server has no advisories.

        ``pools`` and ``clock`` are those of ``IFormat.resource``'s services.
        """


class IPathFormat(Interface):
    """
    A format whose clients choose the paths of files. Provided beside ``IFormat``.

    In the readable layout each file is at its public path, beside the documents of directories. Files that belong to no
    package may lie anywhere.
    """

    document_names = Attribute(
        "the names of a directory's document in the readable layout, a tuple of str; a plain file of the first name is"
        " the document of its directory"
    )
    kept_kinds = Attribute("the kinds of fragments that cannot be made from files again, a tuple of str")

    def directory(package_key: str, version: str) -> str:
        """The directory of a version's files, by its text; with an empty one, the directory of the package."""

    def directory_document(reader: Reader, repository_id: int, directory: str) -> bytes | None:
        """The document of a directory, as clients get it; None if it has none."""


class IExplainingFormat(Interface):
    """A format that itself explains what is served of its packages. Provided beside ``IFormat``."""

    def explain(
        services: Any, repository: Repository, package_key: str, version: str | None, *, revalidate: bool
    ) -> Awaitable[Any]:
        """
        How a package, and one version of it if that is given, is served to readers: an ``Explanation`` of ``proxy``.

        ``services`` are those of ``IFormat.resource``. With ``revalidate`` what is kept is confirmed.

        :raises Invalid: the version is malformed
        """


class IImageFormat(Interface):
    """A format whose packages are images: manifests, tags and blobs. Provided beside ``IFormat``."""

    def signature_keys(repository: Repository) -> Sequence[str] | None:
        """Ids of the keys whose signatures make images visible to readers; None where no signature is needed."""

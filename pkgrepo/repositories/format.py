"""What the repositories know of a package format: the names of packages, their index, and how files are laid out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from attrs import field, frozen

from pkgrepo.archives.inside import NO_SHAPE, Difference, Inside, Shape, Word
from pkgrepo.auth.permissions.format_rights import FormatRights
from pkgrepo.concurrency.late import InThread
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import BlobInfo, Package, Repository, RepositoryType
from pkgrepo.model.admission import Admitted
from pkgrepo.storage.catalog.server.stages import StageItem
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

from .attestations import Attests
from .configuration import Configurations
from .publish.index import Change, Indexer, PackageIndex, VersionsIndexer
from .version_ranges import NO_VERSIONS, Ranges

Made = tuple[UpstreamDocument, bytes]  # a document of an upstream, and its parts


@frozen(kw_only=True, eq=False)
class Layout:
    """
    Where the readable layout has the files of packages, relative to the repository's folder.

    ``path`` is for a file's public path, ``folder`` that of a package by its key. ``places`` are all places of a
    version's files, by key and text, that are not below that folder. The version need not exist any more: what is at
    these places and not of the version is removed. With ``places_vary`` files of a version may also be at other places
    outside of the folder, which its sidecar tells.
    """

    path: Callable[[str], str] = lambda path: path
    folder: Callable[[str], str] = lambda package_key: package_key
    places: Callable[[str, str], Sequence[str]] = lambda _package_key, _version: ()
    places_vary: bool = False


@frozen(kw_only=True, eq=False)
class Tree:
    """
    The layout of a format whose clients choose the paths of files.

    Each file is at its public path, beside the documents of directories. Files that belong to no package may lie
    anywhere. ``directory`` is that of a version's files, by key and text; with an empty text, that of the package.
    ``document`` is the document of a directory of the repository with an id as clients get it, or None.
    ``document_names`` are its names in the readable layout, none if there are no documents; a plain file of the first
    name is the document of its directory. ``kept_kinds`` are the kinds of fragments that cannot be made from files
    again. ``package_of`` is the key of the package of a repository with an id in whose folder a path lies: that belongs
    to it, whatever file it is. With ``places_vary`` the files of a version need not lie in its directory: a path may be
    that of the directory itself, or lead deeper, and files of other packages may lie beside them; a sidecar names them.
    """

    directory: Callable[[str, str], str]
    document: Callable[[Reader, int, str], bytes | None] = lambda *_: None
    document_names: tuple[str, ...] = ()
    kept_kinds: tuple[str, ...] = ()
    package_of: Callable[[Reader, int, str], str | None] = lambda *_: None
    places_vary: bool = False


@frozen(kw_only=True, eq=False)
class Images:
    """
    Of a format whose packages are images: manifests, tags and blobs.

    ``signature_keys`` are the ids of the keys whose signatures make images of a repository visible to readers; None
    where no signature is needed. ``immutable_tags`` are those, of some tags, that a repository does not allow moving.
    """

    signature_keys: Callable[[Repository], Sequence[str] | None]
    immutable_tags: Callable[[Repository, tuple[str, ...]], frozenset[str]]


@frozen
class DerivedFrom:
    """What a file of a companion is made of: a file of the parent, with its package (a key) and its version there."""

    package: str
    version: str
    path: str
    sha256: str


@frozen(kw_only=True, eq=False)
class Companion:
    """
    How repositories of a format belong to repositories of the formats ``of``.

    ``segment`` is the path segment below the address of the other repository, also the last one of the name.
    ``config`` is the configuration of the companion of a repository; None if it gets none. It is given a function that
    finds the public id of the companion of a repository by the public id of that.
    ``copy_of`` is the key of the package of the companion that is made of one of the parent (a key).
    ``origin`` is what a file with these attributes is made of, None for one that was published. ``origins`` are the
    keys of the packages of the parent of which files in a package of the companion (a key) may be made.
    """

    of: tuple[str, ...]
    segment: str
    config: Callable[[Repository, Callable[[str], str | None]], Mapping[str, Any] | None]
    copy_of: Callable[[str], str | None] = lambda _package: None
    origin: Callable[[Mapping[str, Any]], DerivedFrom | None] = lambda _attrs: None
    origins: Callable[[str], Sequence[str]] = lambda _package: ()


@frozen(kw_only=True, eq=False)
class VersionKinds:
    """
    What rules of retention, and lists, ask about the text of a version.

    ``sort`` is its sort key, and raises ``Invalid``. Versions that are ``self_dated`` say themselves when they were
    published, by which they are not put in order. Of a version that is a ``snapshot``, ``build`` is the name of the
    build that a file with these attributes belongs to, None for one of no build.
    """

    sort: Callable[[str], bytes]
    prerelease: Callable[[str], bool]
    self_dated: bool = False
    snapshot: Callable[[str], bool] = lambda _text: False
    build: Callable[[Mapping[str, Any]], str | None] = lambda _attrs: None


@frozen
class Joined:
    """
    Plain files of a stage that an approval does not publish, but joins with those of the repository that it is for.

    ``blobs`` are needed for that. ``put`` does it in the transaction, and returns locators of copies that it did not
    need; it raises L{Outdated} if the files in the repository have changed since they were read.
    """

    paths: frozenset[str]
    blobs: Sequence[BlobInfo]
    put: Callable[[Transaction, Repository, Admitted, int], Sequence[str]]


@frozen(kw_only=True, eq=False)
class Ecosystem:
    """
    How databases of vulnerabilities name the packages and versions of a format.

    ``name`` is OSV's word for the format. ``package_key`` is the key of a package by its name there. ``sort`` is the
    sort key of a version that bounds a range. ``builds`` are the sort keys that all builds of a listed version have:
    from the first, to the second (exclusive). All three raise ``Invalid``. Versions of ``semantic`` ones
    are compared as Semantic Versioning 2.0.0 says.
    """

    name: str
    package_key: Callable[[str], str]
    sort: Callable[[str], bytes]
    builds: Callable[[str], tuple[bytes, bytes]]
    semantic: bool = False


@frozen(kw_only=True, eq=False)
class PackageUrls:
    """
    How package URLs name packages of a format.

    ``name`` is a name as clients write it, by the one in the URL. ``names`` are all that it may have here, by type. The
    versions of ``digest_types`` are digests.
    """

    types: tuple[str, ...] = ()
    name: Callable[[str], str] = lambda name: name
    names: Callable[[str, str], Sequence[str]] = lambda _type, name: (name,)
    digest_types: frozenset[str] = frozenset()


# What the file at a path has inside, given as a descriptor or as bytes. Blocks, and raises ``Invalid`` if the file
# cannot be read to its end.
LooksInside = Callable[[int | bytes, str], Inside]


@frozen(kw_only=True, eq=False)
class Sources:
    """
    How files of a format are compared with archives of their source.

    ``digests`` are those of the files in the file at a path, given as a descriptor or as bytes, by their paths, without
    what builders write. It blocks, and raises ``Invalid`` if the file cannot be read to its end. ``tags`` are those
    that a version of a package may have, by its key and its text, the likeliest first.
    """

    digests: Callable[[int | bytes, str], Mapping[str, bytes]]
    tags: Callable[[str, str], Sequence[str]]


def index_nothing(index: PackageIndex, change: Change) -> None:
    """Every list is read from the catalog on request."""


@frozen(kw_only=True, eq=False)
class StoredFormat:
    """
    A package format, as far as what is stored of it.

    ``package_key`` and ``version_key`` are the normalised forms of a name and of a version; they raise ``Invalid``.
    ``check_place`` checks the names of a storage and of a new repository in it, and raises ``Invalid`` if clients could
    not address it. ``refuses`` is why the rules of a repository do not let it have a version of this text, as a
    sentence; None if they do. ``warnings`` are sentences about surprising effects of a repository's configuration.

    ``index_removed`` updates the index after the removal of many versions, which ``index`` does one by one.
    ``versions`` is None for images; ``ecosystem`` for formats that databases of vulnerabilities have no records of.
    ``rights`` are what decides who owns a name.
    ``purls`` are the package URLs that a version names, from its metadata and the attributes of its files.
    With ``single_file`` a version has one file, beside those that belong to it.
    ``runs_at_install`` tells whether a program of a version runs when it is installed, from its metadata and the paths
    of its files; None if that is not known, also as a whole.

    ``inside`` is how the contents of files are looked into for rules; None where nothing does. ``contents`` are the
    words for what files, or images, can have inside. ``differs`` is what can be compared of two versions, and
    ``shape_of`` what the metadata of a version say of that; it raises ``Invalid``. ``sources`` is how files are
    compared with archives of their source; None where they are not.
    ``attests`` is how files are attested; None where they are not.

    ``public_path`` is the path at which a file is served while its version is not yanked; it may have another one then.

    ``accepts`` tells whether a dependency, as it is written, accepts a version; None if it does not say so. ``ranges``
    is how people write which versions, or tags of images, rules are about.

    ``approved`` is the metadata of a version, of that in the stage where it was, and name and email of who approved it.

    ``restore_documents`` and ``restore_lists`` make, after a reindex, the documents of upstreams about a package, and
    those about no single package, of what a proxy keeps; they raise ``Invalid`` if one would be too large.
    ``join_staged`` prepares, from the services, the target and the hosted repository of a stage, the content, and the
    received bytes of the request, which plain files of a stage an approval joins with those of the target. ``compact``
    is a write command that writes the lists of a hosted repository anew, if they also grow when something is removed;
    it is also run after a change of the settings named by ``list_settings``, on which these lists depend.
    ``lists_noted`` are the types of repositories with lists over all packages that leave out what is noted as hidden,
    see L{pkgrepo.storage.catalog.server.judged}; of others nothing is noted.
    Clients of a format that ``heeds_yanks`` do not choose yanked versions.
    """

    name: str
    aliases: tuple[str, ...] = ()
    configurations: Configurations
    package_key: Callable[[str], str]
    version_key: Callable[[str], str]
    index: Indexer = index_nothing
    check_place: Callable[[str, str], None] = lambda _storage, _repository: None
    refuses: Callable[[Repository, str], str | None] = lambda _repository, _version: None
    warnings: Callable[[Repository], Sequence[str]] = lambda _repository: ()
    layout: Layout = field(factory=Layout)
    tree: Tree | None = None
    images: Images | None = None
    versions: VersionKinds | None = None
    single_file: bool = False
    purls: Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], Sequence[str]] | None = None
    runs_at_install: Callable[[Mapping[str, Any], Sequence[str]], bool | None] | None = None
    inside: LooksInside | None = None
    attests: Attests | None = None
    contents: frozenset[Word] = frozenset()
    differs: frozenset[Difference] = frozenset()
    shape_of: Callable[[Mapping[str, Any]], Shape] = lambda _meta: NO_SHAPE
    sources: Sources | None = None
    public_path: Callable[[str], str] = lambda path: path
    accepts: Callable[[str, str], bool | None] = lambda _dependency, _version: None
    ranges: Ranges = NO_VERSIONS
    ecosystem: Ecosystem | None = None
    package_urls: PackageUrls = field(factory=PackageUrls)
    rights: FormatRights = field(factory=FormatRights)
    index_removed: VersionsIndexer | None = None
    approved: Callable[[Mapping[str, Any], Mapping[str, str]], Mapping[str, Any]] = lambda meta, _person: meta
    companion: Companion | None = None
    restore_documents: Callable[[Reader, Package], Sequence[Made]] | None = None
    restore_lists: Callable[[Reader, Repository], Sequence[Made]] | None = None
    join_staged: Callable[[Any, Repository, Repository, Sequence[StageItem], Any], Awaitable[Joined]] | None = None
    compact: Callable[[Transaction, Repository, int], None] | None = None
    list_settings: frozenset[str] = frozenset()
    lists_noted: frozenset[RepositoryType] = frozenset()
    heeds_yanks: bool = True

    @property
    def is_loaded(self) -> bool:
        """Whether all of it is there, so that no use of a field takes longer than another."""
        return True

    def load(self) -> None:
        """Have all of it there; for one that is not this blocks, for some tenths of a second."""


async def load_formats(formats: Iterable[StoredFormat], in_thread: InThread) -> None:
    """Have all of these formats there, without keeping the reactor."""
    for each in formats:
        if not each.is_loaded:
            await in_thread(each.load)


F = TypeVar("F", bound=StoredFormat)
V = TypeVar("V")


class ByFormat(Mapping[str, V]):
    """
    What ``get`` makes of each format, by name, without those of which it makes None; made at the first use of each.

    So that a part of the server may be given what it needs of all formats before any but the used ones is loaded.
    """

    def __init__(self, formats: Mapping[str, F], get: Callable[[F], V | None]) -> None:
        self._formats: Mapping[str, Any] = formats
        self._get: Callable[[Any], V | None] = get
        self._found: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name not in self._found:
            value = self._get(self._formats[name])
            if value is None:
                raise KeyError(name)
            self._found[name] = value
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._formats if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

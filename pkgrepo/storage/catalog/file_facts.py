"""
What files of upstreams say of themselves, for rules that ask for what the documents of upstreams do not tell.

It is read once out of a file, or out of its metadata, and then known in all repositories: a file is named by its digest
as the upstream announces it. One of which none is announced that could stand for it is named by the place where it
was found, and so is a version all of whose files are described by one of them. What only another file says of a file
is known in that repository alone: an upstream may say it of a file that it does not have. So is when another package,
that a file needs, was first published. What is known of few
packages is removed by housekeeping when it is old; it can be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from pkgrepo.archives.explained import Explained
from pkgrepo.archives.inside import Shape
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import number, scalar

MOST: Final = 500_000  # rows of some 200 bytes
PAGE: Final = 1000  # rows that one query reads
STRONG: Final = ("sha256", "sha512")  # digests that nobody can give to another file


class Attested(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    What the attestation of a file was found to be, by the trusted root with the id ``root``.

    Of one that is ``verified``, ``signer`` is the name in the certificate, and the others are what that names: the
    ``issuer`` of the identity token, the ``repository`` of the source (URL), its ``ref`` and ``commit``, and the
    ``workflow`` (URL). Else ``why`` says, as a clause, why it is not; until then (ms) if it was not there.
    """

    root: str
    verified: bool = False
    why: str = ""
    until_ms: int | None = None
    predicate_type: str = ""
    signer: str = ""
    issuer: str = ""
    repository: str = ""
    workflow: str = ""
    ref: str = ""
    commit: str = ""

    def holds(self, root: str, now_ms: int) -> bool:
        """Whether this is still known, by the trusted root with an id; an empty id is any."""
        return (self.until_ms is None or now_ms < self.until_ms) and root in ("", self.root)


class FileFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    What a file says of itself; None is what was not asked of it, or what its format cannot tell.

    ``contents`` are words for what its bytes have inside, which are ``LOCKED`` alone if that cannot be read. ``shape``
    is what else of its bytes is compared between versions; an earlier release did not read all of it.
    ``digests`` are its own, as ``sha256:<hex>``; ``published_ms`` is when it says that it was published. ``attested``
    is what others say of it, and ``explained`` what the archive of its source does not explain. Of what is
    ``unreadable`` nothing else is known.
    """

    licences: tuple[str, ...] | None = None
    install_scripts: bool | None = None
    contents: tuple[str, ...] | None = None
    digests: tuple[str, ...] = ()
    unreadable: bool = False
    published_ms: int | None = None
    attested: Attested | None = None
    shape: Shape | None = None
    explained: Explained | None = None

    @property
    def is_read(self) -> bool:
        """Whether its bytes were read for comparisons, or cannot be."""
        return (self.shape is not None and self.shape.is_read) or self.contents == LOCKED


LOCKED: Final = ("locked",)  # what is said of the contents of a file that cannot be looked into
Known = Mapping[str, FileFacts]  # by the names of files

_OF_FORMAT = """
    SELECT package_key, file, facts FROM file_fact WHERE format = ? AND (package_key, file) > (?, ?)
    ORDER BY package_key, file LIMIT ?
"""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(FileFacts).decode


def name_of(digests: Mapping[str, str], place: str) -> str:
    """The name of a file with these announced digests (hex, by algorithm); ``place`` is where it is found."""
    return next(iter(strong_names(digests)), place)


def strong_names(digests: Mapping[str, str]) -> list[str]:
    """All names that a file with these digests (hex, by algorithm) may have been given by them."""
    return [f"{each}:{digests[each].lower()}" for each in STRONG if each in digests]


def is_strong(name: str) -> bool:
    """Whether a name is that of the same bytes for ever."""
    return name.partition(":")[0] in STRONG


def place_of(repository_id: int, path: str) -> str:
    """The name of a file, or of a version, that is known by its place in a repository alone."""
    return f"{repository_id}:{path}"


def names_of(digests: Mapping[str, str], repository_id: int, path: str) -> tuple[str, str]:
    """The names of a listed file: for what another file says of it, and for what its bytes say, which counts more."""
    name = name_of(digests, place_of(repository_id, path))
    return described_name(name, repository_id), name


def dependency_name(repository_id: int, package: str) -> str:
    """The name of what is known of the first publication of another package (a key), in a repository."""
    return place_of(repository_id, f" {package}")


def is_dependency_name(name: str) -> bool:
    """Whether a name is of another package: paths and versions begin with no space."""
    return name.partition(":")[2].startswith(" ")


def attested_name(name: str, path: str) -> str:
    """The name of a file for what is attested of it under the name that it has at a path."""
    return f"{name} {path.rpartition('/')[2]}"


def explained_name(name: str, version: str) -> str:
    """
    The name of a file, as that of a version, for what the archive of its source does not explain: no file is called so.
    Another repository may list the same bytes as another version.
    """
    return f"{attested_name(name, '')}/source {version}"


def described_name(name: str, repository_id: int) -> str:
    """The name of a file for what another file of the upstream of a repository says of it."""
    place = place_of(repository_id, "")
    return name if name.startswith(place) else f"{place}{name}"


def note_facts(
    tx: Transaction, format: str, package: str, name: str, facts: FileFacts, now_ms: int, *, shown: bool
) -> None:
    """
    Keep what a file of a package (a key) says of itself.

    Unless that is ``shown``, documents change by it, as far as rules ask for it.
    """
    serial = 0
    if not shown:
        serial = max(now_ms, serial_of_format(tx, format) + 1)
    tx.execute(
        "INSERT INTO file_fact (format, package_key, file, facts, serial, noted_at) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (format, package_key, file) DO UPDATE "
        "SET facts = excluded.facts, serial = excluded.serial, noted_at = excluded.noted_at",
        (format, package, name, _encode(facts).decode(), serial, now_ms),
    )


def find_facts(r: Reader, format: str, package: str, name: str) -> FileFacts | None:
    """What is known of one file of a package (a key); None if nothing is."""
    found = scalar(
        r, "SELECT facts FROM file_fact WHERE format = ? AND package_key = ? AND file = ?", (format, package, name)
    )
    return None if found is None else _decode(found)


def facts_of_package(r: Reader, format: str, package: str) -> tuple[int, Known]:
    """What is known of files of a package (a key), and the serial of that."""
    found = r.all("SELECT file, facts, serial FROM file_fact WHERE format = ? AND package_key = ?", (format, package))
    return max((each[2] for each in found), default=0), {each[0]: _decode(each[1]) for each in found}


def facts_of_format(r: Reader, format: str, repository_id: int, wants: Callable[[str], bool]) -> Mapping[str, Known]:
    """
    What is known in a repository of files of the packages (keys) that are wanted, by their keys.

    Rows are read ``PAGE`` at a time, and what is known in other repositories alone is not kept.
    """
    found: dict[str, dict[str, FileFacts]] = {}
    place, strong = place_of(repository_id, ""), tuple(f"{each}:" for each in STRONG)
    package, wanted, after = "", False, ("", "")
    while page := r.all(_OF_FORMAT, (format, *after, PAGE)):
        for key, name, facts in page:
            if key != package:
                package, wanted = key, wants(key)
            if wanted and name.startswith((place, *strong)):
                found.setdefault(key, {})[name] = _decode(facts)
        after = page[-1][0], page[-1][1]
    return found


def serial_of_package(r: Reader, format: str, package: str) -> int:
    """Differs whenever documents about a package (a key) change by what is known of its files."""
    return number(
        r, "SELECT COALESCE(MAX(serial), 0) FROM file_fact WHERE format = ? AND package_key = ?", (format, package)
    )


def serial_of_format(r: Reader, format: str) -> int:
    """Differs whenever documents about any package do."""
    return number(r, "SELECT COALESCE(MAX(serial), 0) FROM file_fact WHERE format = ?", (format,))


def remove_oldest_facts(tx: Transaction, now_ms: int, most: int) -> int:  # noqa: ARG001 - as other removals
    """Remove at most ``most`` of the oldest rows above the ``MOST`` that are kept. Returns how many."""
    last = scalar(tx, "SELECT noted_at FROM file_fact ORDER BY noted_at DESC LIMIT 1 OFFSET ?", (MOST,))
    if last is None:
        return 0
    return tx.execute(
        "DELETE FROM file_fact WHERE (format, package_key, file) IN "
        "(SELECT format, package_key, file FROM file_fact WHERE noted_at <= ? ORDER BY noted_at LIMIT ?)",
        (last, most),
    )

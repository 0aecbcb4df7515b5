"""Names, versions, ranges and addresses, which clients write in paths, queries and documents; one each line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from pkgrepo.auth.patterns import check_repositories, is_pattern, matcher
from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from pkgrepo.errors import PkgrepoError
from pkgrepo.formats.cargo.names import crate_path, normal_requirement, prefix
from pkgrepo.formats.conda.paths import read_path as read_conda_path
from pkgrepo.formats.container.names import find_digest, parse_digest, parse_tag
from pkgrepo.formats.container.paths import parse_path as parse_image_path
from pkgrepo.formats.go.names import read_path as read_go_path
from pkgrepo.formats.maven.paths import parse_path as parse_maven_path
from pkgrepo.formats.maven.search.query import filter_versions
from pkgrepo.formats.maven.search.query import read_query as read_maven_query
from pkgrepo.formats.npm.paths import read_path as read_npm_path
from pkgrepo.formats.npm.search.requests import read_query as read_npm_query
from pkgrepo.formats.python.names import parse_upload, split_companion
from pkgrepo.formats.raw.paths import parse_path as parse_raw_path
from pkgrepo.formats.rubygems.paths import read_path as read_gem_path
from pkgrepo.gateway.mounts import split
from pkgrepo.outbound.urls import parse_url, resolve_reference
from pkgrepo.repositories.advisories.package_urls import read_purl
from pkgrepo.repositories.cron import parse_cron
from pkgrepo.untrusted.text import split_path
from tests.lab.fuzz.target import REFUSALS, Target
from tests.support.added_formats import ADDED

WORDS: Final = (
    b"*",
    b"||",
    b">=",
    b"<",
    b"~>",
    b"^",
    b"!=",
    b"[",
    b")",
    b",",
    b"-",
    b"+",
    b"!",
    b"@",
    b"/",
    b".",
    b"$",
    b"a" * 200,
)
PATHS: Final[dict[str, Callable[[bytes], object]]] = {
    "npm": read_npm_path,
    "rubygems": read_gem_path,
    "go": read_go_path,
    "container": parse_image_path,
    "maven": partial(parse_maven_path, directory_ok=True),
    "raw": partial(parse_raw_path, written=True),
    "conda": lambda raw: read_conda_path(split_path(raw) or []),
    "mounts": lambda raw: (split(raw), split_path(raw)),
}


def _each(text: str, *reads: Callable[[str], object]) -> None:
    """Each of the readers gets the whole text, whatever the ones before refuse."""
    for read in reads:
        with suppress(PkgrepoError):
            read(text)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _two(data: bytes) -> tuple[str, str]:
    first, _, second = _text(data).partition("\n")
    return first, second


def _format(data: bytes, format_: Any) -> None:
    """A name or a range, and in the second line a version."""
    first, second = _two(data)
    _each(first, format_.package_key, format_.ranges.test)
    _each(second, format_.version_key)
    if format_.versions is not None:
        _each(second, format_.versions.sort, format_.versions.prerelease, format_.versions.snapshot)
    with suppress(PkgrepoError):
        format_.accepts(first, second)
    with suppress(PkgrepoError):
        format_.ranges.test(first)(second)
    if format_.ecosystem is not None:
        _each(first, format_.ecosystem.package_key, format_.ecosystem.sort, format_.ecosystem.builds)
    _each(first, format_.package_urls.name, format_.layout.folder, format_.public_path)


def _addresses(data: bytes) -> None:
    first, second = _two(data)
    resolve_reference(parse_url("https://a.example/b/c?d"), second)
    resolve_reference(parse_url(first), second)


def _texts(data: bytes, formats: Sequence[Any]) -> None:
    first, second = _two(data)
    _each(first, parse_cron, lambda text: check_repositories(text, ""), is_pattern, parse_upload, split_companion)
    _each(first, normal_requirement, prefix, parse_tag, parse_digest, find_digest, read_npm_query, read_maven_query)
    _each(first, lambda text: filter_versions(["1.0", "1.1-SNAPSHOT"], text), lambda text: crate_path(text, "1"))
    _each(first, lambda text: read_purl(text, formats, ""))
    if is_pattern(first):
        matcher(first)(second[:100])


def targets() -> Iterator[Target]:
    """One for the paths of each format, one for its names and versions, and one for the texts of all."""
    for name, read in PATHS.items():
        yield Target(f"path-{name}", read, (b"%2f", b"%2F", b"%00", b"%zz", b"..", b"//", b";", b"%c3%28"))
    formats = {name: each for name, each in make_formats(Config()).items() if name not in ADDED}
    for name, each in formats.items():
        yield Target(f"names-{name}", partial(_format, format_=each), WORDS)
    yield Target("texts", partial(_texts, formats=list(formats.values())), WORDS)
    words = (b"http://", b"//", b"@", b":", b"[::", b"]", b"%zz", b"\\", b"#", b"?")
    yield Target("addresses", _addresses, words, refuses=(*REFUSALS, ValueError))

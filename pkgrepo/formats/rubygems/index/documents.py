"""``/info/<gem>`` as a document that is joined from the lines of one or more repositories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.errors import existing
from pkgrepo.formats.rubygems import configuration
from pkgrepo.gateway.answers.spliced_documents import SplicedDocuments
from pkgrepo.interfaces import Reader
from pkgrepo.model import Fragment, Package
from pkgrepo.proxy.resolving.members import Latest, LatestReason, MemberParts, merge_fragments
from pkgrepo.repositories.publish.index import Spliced
from pkgrepo.storage.catalog.documents import fragments
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.server import repositories

from .gem_lists import DIGESTS, TEXT_TYPE
from .indexing import INFO
from .info import HEAD, without_time

CACHE_SIZE: Final = 64 * 1024 * 1024  # bytes of documents in all content codings
KINDS: Final = {INFO: (INFO,)}


def make_documents() -> SplicedDocuments:
    """The cache of the documents of all repositories; it renders those that are missing."""
    return SplicedDocuments({INFO: TEXT_TYPE}, cache_size=CACHE_SIZE, algorithms=DIGESTS)


def read_parts(reader: Reader, repository_id: int, name: str, form: str) -> tuple[MemberParts, Package]:
    """
    The lines of a gem's live versions, and the gem, from one snapshot.

    :raises NotFound: no such gem; or it has no versions, and the repository hides such gems
    """
    package = existing(packages.find_package(reader, repository_id, name), "gem", name)
    options = configuration.compact_index(repositories.get_repository(reader, repository_id))
    found = fragments.list_fragments(reader, package.id, form)
    if not found and options.drop_yanked:
        existing(None, "gem", name)
    if not options.created_at:
        found = [Fragment(each.sort, each.key, without_time(each.body)) for each in found]
    live = {each.key for each in found}
    sorts = [(sort, text) for sort, text in versions.sorted_texts(reader, package.id) if text in live]
    return MemberParts({}, {form: found}, sorts), package


def splice(_name: str, form: str, _serial: int, members: Sequence[MemberParts]) -> Spliced:
    """``/info`` of a gem from one or more repositories."""
    lines = merge_fragments(members, form)
    return Spliced(HEAD, lines, b"\n" if lines else b"", b"\n")


def latest(members: Sequence[MemberParts]) -> Latest | None:
    """The highest release, or the highest prerelease if there is no release."""
    shown = sorted(pair for member in members for pair in member.versions)
    releases = [text for _, text in shown if not any(map(str.isalpha, text.partition("-")[0]))]
    chosen = releases or [text for _, text in shown]
    return Latest(chosen[-1], LatestReason.HIGHEST) if chosen else None

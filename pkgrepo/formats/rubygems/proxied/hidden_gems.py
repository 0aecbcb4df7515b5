"""
What rules hide of gems in ``/versions``, out of which the other lists over all gems are made.

A hidden version is not in any line. The MD5 of ``/info`` in the lines of a gem that has some is made anew: of a hosted
gem it is that of the document without them; of a gem of an upstream, whose document need not be here, it is that of no
document, so that Bundler asks each time whether the document that it keeps is the present one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from attrs import Factory, frozen

from pkgrepo.formats.rubygems import configuration
from pkgrepo.formats.rubygems.index.info import INFO, info_md5, without_time
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.repositories.policy.rules import NamedRules
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages


def md5_of_nothing(line: bytes) -> bytes:
    """An MD5 that no document has, for a line without one."""
    return hashlib.md5(b"of no document: " + line, usedforsecurity=False).hexdigest().encode()


@frozen(eq=False)
class HiddenGems:
    """
    Leaves out of lines what ``rules`` hide. ``affected`` are the gems of which something was left out, so far.

    ``md5`` is that of the document of a gem without some versions.
    """

    rules: NamedRules
    route: str = ""
    md5: Callable[[str, NamedRules], bytes] | None = None
    affected: set[str] = Factory(set)

    def line(self, line: bytes) -> bytes:
        """A line, with its end, without what is hidden; empty if nothing is left."""
        raw, _, rest = line.partition(b" ")
        name, (listed, _, _) = raw.decode("utf-8", "replace"), rest.partition(b" ")
        versions = listed.decode("ascii", "replace").split(",")
        hidden = self.rules.hides(name, [each.removeprefix("-") for each in versions], self.route)
        if not hidden and name not in self.affected:
            return line
        self.affected.add(name)
        left = ",".join(each for each in versions if each.removeprefix("-") not in hidden)
        if not left:
            return b""
        head = b"%b %b" % (raw, left.encode())
        md5 = md5_of_nothing(head) if self.md5 is None else self.md5(name, self.rules)
        return b"%b %b\n" % (head, md5)


def hidden_of_hosted(reader: Reader, repository: Repository, rules: NamedRules) -> HiddenGems:
    """What leaves hidden gems out of the list of a hosted repository, as the reader sees it."""
    created_at = configuration.compact_index(repository).created_at

    def md5(name: str, rules: NamedRules) -> bytes:
        package = packages.find_package(reader, repository.id, name)
        found = [] if package is None else index_documents.list_fragments(reader, package.id, INFO)
        hidden = rules.hides(name, [each.key for each in found])
        shown = [each for each in found if each.key not in hidden]
        return info_md5(each.body if created_at else without_time(each.body) for each in shown).encode()

    return HiddenGems(rules, md5=md5)

"""The rules that decide whether a file of an upstream is served: reserved names, and the minimum age of releases."""

from __future__ import annotations

from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import File, Repository
from pkgrepo.proxy.refusals import NameReserved
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.packages import files

from .leaves import Leaf
from .release_age import TooYoung, find_age_rule


class FileRules:
    """Checks files of proxies on behalf of the repositories that they are asked of."""

    def __init__(self, catalog: ICatalog, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock

    async def check_kept(
        self, repository: Repository, leaf: Leaf, key: str, path: str, file: File, trace: Trace
    ) -> None:
        """
        Check that a kept file may be served, whose name may have been reserved later.

        :raises NameReserved: it is reserved; :raises TooYoung: a rule refuses it until later
        """
        self.check_reserved(leaf, key, trace)
        published_ms = await self._catalog.look(_find_published, file)
        self.check_age(repository, leaf, key, path, published_ms, trace)

    def check_reserved(self, leaf: Leaf, key: str, trace: Trace) -> None:
        """Check the name of a package. :raises NameReserved: no upstream is asked for it"""
        for owner, rules in leaf.rules:
            pattern = rules.reserved_by(key)
            if pattern is not None:
                trace.add(StepKind.RESERVED, repository=leaf.repository.path, pattern=pattern, rule=owner.path)
                raise NameReserved("package", key, pattern)

    def check_age(
        self, repository: Repository, leaf: Leaf, key: str, path: str, published_ms: int | None, trace: Trace
    ) -> None:
        """Check the age of a file of a package. :raises TooYoung: a rule refuses it until later"""
        rule = find_age_rule(leaf, key) if key else None
        if rule is None:
            return
        try:
            rule.check(path.rsplit("/", 1)[-1], published_ms, self._clock.now_ms(), repository)
        except TooYoung as error:
            proxy = leaf.repository.path
            trace.add(StepKind.FILE_REFUSED, repository=proxy, rule=rule.repository, path=path, why=str(error))
            raise


def _find_published(reader: Reader, file: File) -> int | None:
    """When the upstream published a kept file; of a companion that was found in another file, when that was."""
    found: File | None = file
    if file.origin is None and file.role is not None:
        found = files.find_file(reader, file.repository_id, file.path.removesuffix(file.role))
    return None if found is None or found.origin is None else found.origin.published_ms

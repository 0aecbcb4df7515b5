"""Which files of a repository are those that lock files name, by what its API says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from attrs import Factory, define

from pkgrepo.gateway.mirrored.locks import Lock, Wanted, differs
from pkgrepo.gateway.mirrored.places import Mirrored


@define
class Chosen:
    """What lock files name of a repository; of files ``only`` those with names that match a glob."""

    format: Mirrored
    only: Sequence[str] = ()
    _by_key: dict[str, list[Wanted]] = Factory(dict)
    _found: set[Wanted] = Factory(set)

    def add(self, lock: Lock) -> None:
        """Add what a lock file names."""
        for each in lock.wanted:
            if not each.file or self._is_among(each.label):
                self._by_key.setdefault(self.format.package_key(each), []).append(each)

    def has_package(self, key: str) -> bool:
        """Whether something of a package is wanted."""
        return key in self._by_key

    def takes(self, key: str, version: str, path: str, digests: Mapping[str, str]) -> bool:
        """Whether a file of a version is wanted, or with an empty path the version of an image."""
        name = path.rpartition("/")[2]
        base, companion = self.format.split(name)
        mine = [
            each
            for each in self._by_key.get(key, ())
            if self.format.is_wanted(each, version, path, base)
            and (companion or differs(each.digests, digests) is not True)
        ]
        self._found.update(mine)
        return bool(mine) and (not path or self._is_among(base))

    def missing(self) -> dict[str, str]:
        """Return what is wanted and was not asked for, with the reason."""
        every = (each for some in self._by_key.values() for each in some)
        return {
            f"{each.name} {each.label}": "the repository does not keep it" for each in every if each not in self._found
        }

    def _is_among(self, name: str) -> bool:
        return not self.only or any(fnmatchcase(name, each) for each in self.only)

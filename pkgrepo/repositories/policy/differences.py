"""
What is different between two files of versions that follow each other, in the words of rules: pure.

====================  ==================================================================================================
word                  what it says
====================  ==================================================================================================
``install_script``    the file has one inside, and the one before has none; so for ``native_build``, ``pth`` and
                      ``executable``, see L{pkgrepo.archives.inside}
``dependency``        it needs a package of a name that the one before does not need
``young_dependency``  such a package was first published less than ``YOUNG_MS`` before this version; or there are
                      more than ``MOST_ASKED`` such names
``git_dependency``    it needs one from an address of its own, such as a git repository, that the other one does not
``publisher``         it was published by an account that has neither published the one before, nor could have
``source``            its source is in another repository; both name one
``size``              unpacked it has more than ``GROWTH`` times as many bytes, and ``LEAST_GROWTH`` more
``obfuscated``        it has code that people cannot read where the one before has none, see
                      L{pkgrepo.archives.minified}
``licence``           its files declare, or have the text of, a licence that those of the one before do not, which have
                      another one
``unexplained``       it has files that the archive of its tag does not explain where the one before has none, see
                      L{pkgrepo.archives.explained}; or there is no such tag, and the one before has one; or the
                      archive is one of another repository
====================  ==================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from attrs import evolve, frozen

from pkgrepo.archives import minified
from pkgrepo.archives.explained import MANY, Explained, new_places
from pkgrepo.archives.inside import DIFFERENCES, NO_SHAPE, Difference, Shape
from pkgrepo.archives.licence_texts import new_licences
from pkgrepo.archives.minified import GROWTH, LEAST_GROWTH

YOUNG_MS: Final = 60 * 24 * 3600 * 1000  # 35 days in the incident event-stream of 2018
MOST_ASKED: Final = 5  # packages that are asked about, of one version
MOST_NAMED: Final = 5  # names in a sentence
NO_TAG, OTHER_SOURCE = "no tag", "another repository"  # in place of the names of files
_IN_PLACE: Final[Mapping[str, str]] = {
    NO_TAG: "first version without a tag of its source",
    OTHER_SOURCE: "another repository as its source",
    MANY: "more unexplained files than can be told",
}
_UNEXPLAINED: Final = "new unexplained"
_OBFUSCATED: Final = "new obfuscated or minified code in"

ALL: Final = frozenset(DIFFERENCES)
_FIRST: Final[Sequence[Difference]] = ("install_script", "native_build", "pth", "executable")
_PRINTED: Final = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@._/ -]{0,99}", re.ASCII)
_NONE: Final[Mapping[Difference, tuple[str, Sequence[str]]]] = MappingProxyType({})


@frozen
class Seen:
    """
    What is compared of a file: what it has inside, what its bytes and its document say, and what the archive of its
    source does not explain; None is not known.
    """

    contents: frozenset[str] | None = None
    shape: Shape | None = None
    told: Shape | None = None
    explained: Explained | None = None


@frozen
class Compared:
    """
    How a file differs from those of versions before it.

    ``words`` has what is different, with the version before and names for a sentence. Of what is ``unknown`` nothing
    can be said. ``lacking`` are the paths of files that are to be read for that, or an empty one if it is not known
    which; ``asking`` are names of packages of which it is to be asked when they were first published, and
    ``unexplained`` the paths of files with which the archives of their sources are to be compared.
    """

    words: Mapping[Difference, tuple[str, Sequence[str]]] = _NONE
    unknown: frozenset[Difference] = frozenset()
    lacking: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()

    @classmethod
    def joined(cls, found: Iterable[Compared]) -> Compared:
        """What is different from any of several versions, as the first of them says it."""
        words: dict[Difference, tuple[str, Sequence[str]]] = {}
        unknown: frozenset[Difference] = frozenset()
        asking, unexplained = dict[str, None](), dict[str, None]()
        for each in found:
            words = {**each.words, **words}
            unknown |= each.unknown
            asking |= dict.fromkeys(each.asking)
            unexplained |= dict.fromkeys(each.unexplained)
        return cls(words, unknown, asking=tuple(asking), unexplained=tuple(unexplained))

    @property
    def is_open(self) -> bool:
        """Whether something is still to be read or asked."""
        return bool(self.lacking or self.asking or self.unexplained)

    def before(self, asked: Collection[Difference]) -> str:
        """The version from which something is different that is ``asked``; empty if nothing is."""
        return next((self.words[each][0] for each in DIFFERENCES if each in asked and each in self.words), "")

    def sentence(self, asked: Collection[Difference]) -> str:
        """What of that which is ``asked`` is different, in one line; empty if nothing is."""
        said: dict[str, list[str]] = {}
        for each in DIFFERENCES:
            if each in asked and each in self.words:
                version, names = self.words[each]
                said.setdefault(version, []).append(_SAID[each](names))
        return ", ".join(f"{', '.join(texts)} since {printed(version)}" for version, texts in said.items())


NOTHING_BEFORE: Final = Compared()
EVERYTHING: Final = Compared(words=dict.fromkeys(DIFFERENCES, ("", ())))
UNKNOWN: Final = Compared(unknown=ALL)
NO_LINE: Final = Compared(unknown=ALL, lacking=("",))  # of versions, which are not known here


def compare(before: Seen, after: Seen, version: str) -> Compared:
    """How a file differs from another one, which is of the ``version`` before."""
    words: dict[Difference, Sequence[str]] = {}
    unknown: set[Difference] = set()
    if before.contents is None or after.contents is None:
        unknown.update(_FIRST)
    else:
        words.update((each, ()) for each in _FIRST if each in after.contents and each not in before.contents)
    if None in (before.shape, after.shape, before.told, after.told):
        unknown.update(ALL - {*_FIRST, "publisher"})
    else:
        old, new = _whole(before), _whole(after)
        words.update(_of_shapes(old, new))
        if old.unreadable is None or new.unreadable is None:
            unknown.add("obfuscated")
        if old.licences is None or new.licences is None:
            unknown.add("licence")
    said, says = before.told or NO_SHAPE, after.told or NO_SHAPE
    if not said.publisher or not says.publisher:
        unknown.add("publisher")
    elif says.publisher not in (said.publisher, *said.maintainers):
        words["publisher"] = (says.publisher,)
    if before.explained is None or after.explained is None or MANY in before.explained.built:
        unknown.add("unexplained")
    elif before.explained.tag:
        unknown.discard("unexplained")
        places = _unexplained(before.explained, after.explained)
        words.update({"unexplained": places} if places else {})
    else:  # nothing was explained before
        unknown.discard("unexplained")
    return Compared({word: (version, names) for word, names in words.items()}, frozenset(unknown))


def _unexplained(before: Explained, after: Explained) -> Sequence[str]:
    """
    What of a file is news that the archive of its source does not explain, or what is in place of names.

    Who publishes says where the source is: an archive of another repository than that of the version before explains
    nothing.
    """
    if after.asked and after.asked != before.asked:
        return (OTHER_SOURCE,)
    return new_places(before, after) if after.tag else (NO_TAG,)


def with_ages(
    found: Compared, after: Seen, published_ms: int, first_published: Callable[[str], int | None]
) -> Compared:
    """
    The comparison of a file of a version that was published then (ms), with what is known of the ages of dependencies.

    ``first_published`` tells when a package was first published (ms), None if nothing tells that; it raises
    ``LookupError`` if that was not asked yet.
    """
    version, names = found.words.get("dependency", ("", ()))
    said = [each for each in (after.shape, after.told) if each is not None]
    asked = {name for each in said for name in {*each.dependencies} - {*each.direct, *each.aliases}}
    names = [each for each in names if each in asked]
    young, asking, known = list[str](), list[str](), True
    for each in () if len(names) > MOST_ASKED else names:
        try:
            first_ms = first_published(each)
        except LookupError:
            asking.append(each)
        else:
            known = known and first_ms is not None
            young += [each] if first_ms is not None and first_ms > published_ms - YOUNG_MS else []
    if len(names) > MOST_ASKED:
        young = names
    if young:
        return evolve(found, words={**found.words, "young_dependency": (version, young)})
    if asking or not known:
        return evolve(found, unknown=found.unknown | {"young_dependency"}, asking=tuple(asking))
    return found


def _whole(seen: Seen) -> Shape:
    return (seen.shape or NO_SHAPE).joined(seen.told or NO_SHAPE)


def _of_shapes(before: Shape, after: Shape) -> Mapping[Difference, Sequence[str]]:
    found: dict[Difference, Sequence[str]] = {
        "dependency": sorted({*after.dependencies} - {*before.dependencies}),
        "git_dependency": sorted({*after.direct} - {*before.direct}),
        "source": sorted({*after.sources} - {*before.sources}) if before.sources else (),
    }
    old, new = before.unpacked, after.unpacked
    if old is not None and new is not None and new > GROWTH * old and new - old > LEAST_GROWTH:
        found["size"] = (_bytes(old), _bytes(new))
    if before.unreadable is not None and after.unreadable is not None:
        found["obfuscated"] = [*minified.new_places(before.unreadable, after.unreadable)]
    found["licence"] = new_licences(before.licences or (), after.licences or ())
    return {word: names for word, names in found.items() if names}


def _bytes(count: int) -> str:
    return f"{count / 1024:.0f} KiB" if count >= 1024 else f"{count} bytes"


def printed(text: str) -> str:
    """A text of a package, as it may be printed in one line."""
    return text if _PRINTED.fullmatch(text) else ascii(text[:100])


def _named(what: str, many: str, names: Sequence[str]) -> str:
    shown = " ".join(printed(each) for each in names[:MOST_NAMED])
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{what if len(names) == 1 else many} {shown}{rest}"


_SAID: Final[Mapping[Difference, Callable[[Sequence[str]], str]]] = {
    "install_script": lambda _names: "first install_script",
    "native_build": lambda _names: "first native_build",
    "pth": lambda _names: "first pth",
    "executable": lambda _names: "first executable",
    "dependency": lambda names: _named("new dependency", "new dependencies", names),
    "young_dependency": lambda names: _named("new young_dependency", "new young_dependencies", names),
    "git_dependency": lambda names: _named("new git_dependency", "new git_dependencies", names),
    "publisher": lambda names: _named("another publisher", "other publishers", names),
    "source": lambda names: _named("another source", "other sources", names),
    "size": lambda sizes: f"size from {' to '.join(sizes)}",
    "obfuscated": lambda names: _named(_OBFUSCATED, _OBFUSCATED, names),
    "licence": lambda names: _named("another licence", "other licences", names),
    "unexplained": lambda names: _IN_PLACE.get("".join(names[:1])) or _named(_UNEXPLAINED, _UNEXPLAINED, names),
}

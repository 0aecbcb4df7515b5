"""
An in-memory search index of the packages of one repository.

A query scans the texts of all packages, which are short: 60 ns for each word and package. Only packages that a page can
show are scored and sorted. Packages are in slots, ordered by their downloads when the index was built; later packages
follow.

========================  ===========================================================================================
memory of a package       bytes
========================  ===========================================================================================
its text and facets       their length, and 100; four times as much if a character is above U+00FF
its key, and its slot     250
========================  ===========================================================================================

100,000 packages of npm take some 60 MB. Queries run in threads, and release the GIL every half millisecond.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from attrs import frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.lru import Lru

# The score of a word by where it is found, best first.
SAME_NAME: Final = 100.0
NAME_BEGINS: Final = 40.0
IN_NAME: Final = 20.0
KEYWORD: Final = 15.0
IN_DESCRIPTION: Final = 5.0
IN_KEYWORD: Final = 2.5
DEPRECATED: Final = 0.5  # factor for deprecated packages

SCORED: Final = 500  # packages scored for one query; of more matches, those with the first word in the name
STRIDE: Final = 1024  # slots scanned between two releases of the GIL, some 0.1 ms; also slots whose names are joined
PACKAGE_SIZE: Final = 350  # bytes of a package beside its texts
MAX_CACHED: Final = 64  # results cached until the index changes
MAX_FACET: Final = 200  # characters
MAX_TEXT: Final = 4000  # characters of a package that are searched

_MARK: Final = "\x1f"  # whitespace for str.split(), so no word contains it


@frozen
class Entry:
    """
    A package in the index.

    Words are searched in ``text`` (see L{join_text}), qualifiers in ``facets`` (see L{facet}).
    """

    key: str
    text: str
    facets: str
    deprecated: bool
    downloads: int = 0


@frozen
class Query:
    """
    The conditions of a search.

    The text must contain every word. The facets must contain one of each group, and match every pattern.
    """

    words: tuple[str, ...] = ()
    facets: tuple[tuple[str, ...], ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()


@frozen
class Found:
    """A page of results: keys of packages with their scores, best first, and the number of all results."""

    keys: Sequence[tuple[str, float]]
    total: int


def join_text(name: str, keywords: Iterable[str], description: str) -> str:
    """Return the text of a package in lower case: one line each with the name, the keywords and the description."""
    words = _MARK.join(" ".join(each.split()) for each in keywords)
    text = f"{name}\n{_MARK}{words}{_MARK}\n{' '.join(description.split())}"
    return text[:MAX_TEXT].lower()


def facet(kind: str, value: str) -> str:
    """Return a facet of a package; the facets of a package are concatenated."""
    value = value.replace(_MARK, " ")[:MAX_FACET]
    return f"{_MARK}{kind}:{value}{_MARK}"


def facet_with(kind: str, part: str) -> re.Pattern[str]:
    """Return a pattern for a facet of this kind whose value contains ``part``."""
    return re.compile(f"{_MARK}{re.escape(kind)}:[^{_MARK}]*{re.escape(part)}")


class SearchIndex:
    """
    The packages of one repository.

    Several threads may query and change it at once; a query sees each package before or after a change. ``scored``
    and ``stride`` are ``SCORED`` and ``STRIDE``.
    """

    def __init__(self, *, scored: int = SCORED, stride: int = STRIDE) -> None:
        self._scored_at_most = scored
        self._stride = stride
        self.size = 0  # bytes, estimated
        self._lock = threading.Lock()
        self._slots: dict[str, int] = {}
        self._keys: list[str] = []
        self._texts: list[str] = []  # empty for a free slot
        self._facets: list[str] = []
        self._downloads: list[int] = []
        self._deprecated: set[int] = set()
        self._free: list[int] = []
        self._names: dict[int, str] = {}  # joined names by the first slot of each stride, made on demand
        self._answers: Lru[tuple[Query, int, int], Found] = Lru(MAX_CACHED)
        self._changes = 0

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: str) -> bool:
        return key in self._slots

    def put(self, entry: Entry) -> None:
        """Add or replace a package."""
        with self._lock:
            slot = self._slots.get(entry.key)
            if slot is None:
                slot = self._new_slot(entry)
            else:
                self.size -= _size(entry.key, self._texts[slot], self._facets[slot])
                if entry.downloads:
                    self._downloads[slot] = entry.downloads
            self._facets[slot], self._texts[slot] = entry.facets, entry.text
            (self._deprecated.add if entry.deprecated else self._deprecated.discard)(slot)
            self.size += _size(entry.key, entry.text, entry.facets)
            self._changed(slot)

    def remove(self, key: str) -> None:
        """Remove a package, if it is in the index."""
        with self._lock:
            slot = self._slots.pop(key, None)
            if slot is None:
                return
            self.size -= _size(key, self._texts[slot], self._facets[slot])
            self._texts[slot] = self._facets[slot] = ""
            self._deprecated.discard(slot)
            self._free.append(slot)
            self._changed(slot)

    def find(self, query: Query, start: int, size: int) -> Found:
        """Return a page of the matches. Call it in a thread: some 10 ms for 100,000 packages."""
        place = (query, start, size)
        with self._lock:
            cached, changes = self._answers.get(place), self._changes
        if cached is not None:
            return cached
        slots = self._matching(query)
        ranked = self._rank(query.words, slots, start + size)[start:]
        found = Found([(self._keys[slot], fit) for slot, fit in ranked], len(slots))
        with self._lock:
            if self._changes == changes:
                self._answers.put(place, found)
        return found

    def keys(self, query: Query) -> list[str]:
        """Return the keys of all matches, the most downloaded first. Call it in a thread."""
        return [self._keys[slot] for slot in self._matching(query)]

    def page(self, query: Query, keys: Sequence[str], start: int, size: int) -> Found:
        """Return a page of those ``keys`` that the caller may see."""
        # By the given keys: a slot may have been reused for another package.
        slots = {slot: key for key in keys if (slot := self._slots.get(key)) is not None}
        ranked = self._rank(query.words, list(slots), start + size)[start:]
        return Found([(slots[slot], fit) for slot, fit in ranked], len(slots))

    def _new_slot(self, entry: Entry) -> int:
        if self._free:
            slot = self._free.pop()
            self._keys[slot], self._downloads[slot] = entry.key, entry.downloads
        else:
            slot = len(self._keys)
            self._keys.append(entry.key)
            self._downloads.append(entry.downloads)
            self._facets.append("")
            self._texts.append("")  # last, because readers scan the texts and expect the other lists to be as long
        self._slots[entry.key] = slot
        return slot

    def _changed(self, slot: int) -> None:
        self._names.pop(slot // self._stride * self._stride, None)
        self._answers.clear()
        self._changes += 1

    def _matching(self, query: Query) -> list[int]:
        """Return the slots that match, in order."""
        texts, facets, stride = self._texts, self._facets, self._stride
        # Longer words are in fewer texts. A word that is part of another one needs no search of its own.
        words = sorted(set(query.words), key=len, reverse=True)
        words = [word for at, word in enumerate(words) if not any(word in other for other in words[:at])]
        slots: list[int] = []
        gil = GilReleaser()
        first = words[0] if words else "\n"  # which is in every text
        for at in range(0, len(texts), stride):
            slots += [slot for slot, text in enumerate(texts[at : at + stride], at) if first in text]
            gil.release_if_due()
        for word in words[1:]:
            fitting: list[int] = []
            for at in range(0, len(slots), stride):
                fitting += [slot for slot in slots[at : at + stride] if word in texts[slot]]
                gil.release_if_due()
            slots = fitting
        for group in query.facets:
            slots = _filter(slots, facets, partial(_contains_any, group))
        for pattern in query.patterns:
            slots = _filter(slots, facets, pattern.search)
        return slots

    def _rank(self, words: Sequence[str], slots: list[int], wanted: int) -> list[tuple[int, float]]:
        """
        Return the first ``wanted`` slots, best first; slots beyond the scored ones follow in slot order.

        The order does not depend on ``wanted``, so that pages are consistent.
        """
        if not words and len(slots) > self._scored_at_most:
            deprecated = self._deprecated
            gone = [slot for slot in slots if slot in deprecated]
            fine = [slot for slot in slots if slot not in deprecated] if gone else slots
            return [*((slot, 1.0) for slot in fine[:wanted]), *((slot, DEPRECATED) for slot in gone)][:wanted]
        chosen = slots if len(slots) <= self._scored_at_most else self._candidates(words[0], slots)
        ranked = self._scored(words, chosen)
        if wanted > len(chosen) and len(chosen) < len(slots):
            taken = set(chosen)
            ranked += [(slot, IN_DESCRIPTION) for slot in slots if slot not in taken]
        return ranked[:wanted]

    def _candidates(self, word: str, slots: list[int]) -> list[int]:
        """Choose the slots to score: names equal to the word, then beginning with it, containing it, and others."""
        chosen: dict[int, None] = {}
        most = self._scored_at_most
        for before, behind in (("\n", "\n"), ("/", "\n"), ("\n", ""), ("/", ""), ("", "")):
            wanted = f"{before}{word}{behind}"
            for at, names in self._joined_names():
                if len(chosen) >= most:
                    break
                fits = (at + line for line in _lines_with(wanted, names))
                chosen.update((slot, None) for slot in fits if _contains(slots, slot))
        if len(chosen) < most:
            chosen.update(dict.fromkeys(slots[: 2 * most]))
        return list(chosen)[:most]

    def _joined_names(self) -> Iterator[tuple[int, str]]:
        """Iterate over the names of all packages, joined as lines of long strings, with the slot of the first line."""
        gil = GilReleaser()
        for at in range(0, len(self._texts), self._stride):
            names = self._names.get(at)
            if names is None:
                lines = [text.partition("\n")[0] for text in self._texts[at : at + self._stride]]
                names = self._names[at] = "\n".join(["", *lines, ""])
            yield at, names
            gil.release_if_due()

    def _scored(self, words: Sequence[str], slots: Sequence[int]) -> list[tuple[int, float]]:
        texts, downloads, keys, gil = self._texts, self._downloads, self._keys, GilReleaser()
        scored: list[tuple[float, int, str, int]] = []
        for slot in slots:
            fit = 1.0 + _score(words, texts[slot])
            fit *= DEPRECATED if slot in self._deprecated else 1.0
            scored.append((-fit, -downloads[slot], keys[slot], slot))
            gil.release_if_due()
        scored.sort()
        return [(slot, -fit) for fit, _, _, slot in scored]


def _filter(slots: Sequence[int], texts: Sequence[str], fits: Callable[[str], object]) -> list[int]:
    """Return those of the slots whose text fits."""
    kept: list[int] = []
    gil = GilReleaser()
    for at in range(0, len(slots), STRIDE):
        kept += [slot for slot in slots[at : at + STRIDE] if fits(texts[slot])]
        gil.release_if_due()
    return kept


def _contains_any(words: Sequence[str], text: str) -> bool:
    return any(word in text for word in words)


def _lines_with(wanted: str, names: str) -> Iterator[int]:
    """
    Iterate over the numbers, from 0, of the lines in which ``wanted`` is found; it may include their line feeds.

    There is a line feed before the first line and after the last one.
    """
    line, counted, at = -1, 0, names.find(wanted)
    while at >= 0:
        line += names.count("\n", counted, at + 1)
        counted = at + 1
        yield line
        at = names.find(wanted, names.find("\n", counted))


def _contains(slots: Sequence[int], slot: int) -> bool:
    """Whether sorted slots contain a slot."""
    at = bisect_left(slots, slot)
    return at < len(slots) and slots[at] == slot


def _without_scope(name: str) -> str:
    """Return a name without its scope."""
    return name.partition("/")[2] if name.startswith("@") else name


def _score(words: Sequence[str], text: str) -> float:
    name, _, rest = text.partition("\n")
    keywords, _, description = rest.partition("\n")
    bare = _without_scope(name)
    return sum(_score_word(word, name, bare, keywords, description) for word in words)


def _score_word(word: str, name: str, bare: str, keywords: str, description: str) -> float:
    if word in (name, bare):
        return SAME_NAME
    if bare.startswith(word):
        return NAME_BEGINS
    if word in name:
        return IN_NAME
    if f"{_MARK}{word}{_MARK}" in keywords:
        return KEYWORD
    return IN_DESCRIPTION if word in description else IN_KEYWORD


def _size(key: str, text: str, facets: str) -> int:
    wide = 1 if text.isascii() else 4
    return PACKAGE_SIZE + len(key) + wide * len(text) + len(facets)

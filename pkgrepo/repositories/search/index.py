"""
An in-memory index of the packages of one repository.

A query is answered by going through the texts, which are short and in memory: 60 ns for each word and package. Nothing
is sorted or scored that no page shows. Packages are in slots, in the order of their downloads when the index was built;
later ones come behind them.

========================  ===========================================================================================
a package takes           bytes
========================  ===========================================================================================
its text and facets       as they are, and 100; four times as much where a character is beyond U+00FF
its key, and its slot     250
========================  ===========================================================================================

100,000 packages of npm take some 60 MB. Work is done in threads, and pauses for others every half millisecond.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from attrs import frozen

from pkgrepo.storage.gil import GilReleaser

# How well a word fits, best first.
SAME_NAME: Final = 100.0
NAME_BEGINS: Final = 40.0
IN_NAME: Final = 20.0
KEYWORD: Final = 15.0
IN_DESCRIPTION: Final = 5.0
IN_KEYWORD: Final = 2.5
DEPRECATED: Final = 0.5  # what the score of a deprecated package is multiplied with

SCORED: Final = 500  # packages that are scored for one query; of more, those are that have the first word in the name
STRIDE: Final = 1024  # slots that are gone through between two pauses, some 0.1 ms; and whose names are joined
PACKAGE_SIZE: Final = 350  # bytes that a package takes beside its texts
MOST_ANSWERS: Final = 64  # that are kept until the index changes
LONGEST_FACET: Final = 200  # characters
LONGEST_TEXT: Final = 4000  # characters of a package that are looked through

_MARK: Final = "\x1f"  # str.split() takes it for a blank, so that no word has it


@frozen
class Entry:
    """
    A package as search sees it.

    ``text`` is what words are looked for in (see L{join_text}), ``facets`` what qualifiers ask for (see L{facet}).
    """

    key: str
    text: str
    facets: str
    deprecated: bool
    downloads: int = 0


@frozen
class Query:
    """
    What is looked for. Every word must be in the text; of each group of facets one must be there; every pattern must be
    found in the facets.
    """

    words: tuple[str, ...] = ()
    facets: tuple[tuple[str, ...], ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()


@frozen
class Found:
    """Keys of packages with their scores, best first, and how many there are in all."""

    keys: Sequence[tuple[str, float]]
    total: int


def join_text(name: str, keywords: Iterable[str], description: str) -> str:
    """The text of a package, in lower case: a line with the name, one with the keywords, one with the description."""
    words = _MARK.join(" ".join(each.split()) for each in keywords)
    text = f"{name}\n{_MARK}{words}{_MARK}\n{' '.join(description.split())}"
    return text[:LONGEST_TEXT].lower()


def facet(kind: str, value: str) -> str:
    """A facet of a package, as it stands among its facets: they are joined as they are."""
    value = value.replace(_MARK, " ")[:LONGEST_FACET]
    return f"{_MARK}{kind}:{value}{_MARK}"


def facet_with(kind: str, part: str) -> re.Pattern[str]:
    """A pattern that finds a facet of this kind whose value has this part."""
    return re.compile(f"{_MARK}{re.escape(kind)}:[^{_MARK}]*{re.escape(part)}")


class SearchIndex:
    """
    The packages of one repository.

    Queries and changes may come from several threads at once; a query sees each package as it was or as it is.
    """

    def __init__(self) -> None:
        self.size = 0  # bytes, roughly
        self._lock = threading.Lock()
        self._slots: dict[str, int] = {}
        self._keys: list[str] = []
        self._texts: list[str] = []  # empty where a slot is free
        self._facets: list[str] = []
        self._downloads: list[int] = []
        self._deprecated: set[int] = set()
        self._free: list[int] = []
        self._names: dict[int, str] = {}  # of so many slots at once, made when they are wanted
        self._answers: OrderedDict[tuple[Query, int, int], Found] = OrderedDict()
        self._changes = 0

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: str) -> bool:
        return key in self._slots

    def put(self, entry: Entry) -> None:
        """Add a package, or replace it."""
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
        """Take a package out; absent is fine."""
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
        """A page of what fits. For a thread: some 10 ms at 100,000 packages."""
        place = (query, start, size)
        with self._lock:
            kept, changes = self._answers.get(place), self._changes
        if kept is not None:
            return kept
        slots = self._matching(query)
        ranked = self._rank(query.words, slots, start + size)[start:]
        found = Found([(self._keys[slot], fit) for slot, fit in ranked], len(slots))
        with self._lock:
            if self._changes == changes:
                self._answers[place] = found
                if len(self._answers) > MOST_ANSWERS:
                    self._answers.popitem(last=False)
        return found

    def keys(self, query: Query) -> list[str]:
        """The keys of everything that fits, the most downloaded first. For a thread, as well."""
        return [self._keys[slot] for slot in self._matching(query)]

    def page(self, query: Query, keys: Sequence[str], start: int, size: int) -> Found:
        """A page of those of its ``keys`` that a caller may see."""
        # By the keys that were asked for: another package may get a slot meanwhile.
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
            self._texts.append("")  # the last: who goes through the texts finds the rest there
        self._slots[entry.key] = slot
        return slot

    def _changed(self, slot: int) -> None:
        self._names.pop(slot // STRIDE * STRIDE, None)
        self._answers.clear()
        self._changes += 1

    def _matching(self, query: Query) -> list[int]:
        """The slots that fit, in their order."""
        texts, facets = self._texts, self._facets
        # Longer words are in fewer texts; what is part of another word is in every text that has the other.
        words = sorted(set(query.words), key=len, reverse=True)
        words = [word for at, word in enumerate(words) if not any(word in other for other in words[:at])]
        slots: list[int] = []
        gil = GilReleaser()
        first = words[0] if words else "\n"  # which is in every text
        for at in range(0, len(texts), STRIDE):
            slots += [slot for slot, text in enumerate(texts[at : at + STRIDE], at) if first in text]
            gil.release_if_due()
        for word in words[1:]:
            fitting: list[int] = []
            for at in range(0, len(slots), STRIDE):
                fitting += [slot for slot in slots[at : at + STRIDE] if word in texts[slot]]
                gil.release_if_due()
            slots = fitting
        for group in query.facets:
            slots = _only(slots, facets, partial(_contains_any, group))
        for pattern in query.patterns:
            slots = _only(slots, facets, pattern.search)
        return slots

    def _rank(self, words: Sequence[str], slots: list[int], wanted: int) -> list[tuple[int, float]]:
        """
        The first ``wanted`` of the slots, best first; more than is scored comes behind that, as it is.

        The order is the same whatever is wanted, so that pages fit together.
        """
        if not words and len(slots) > SCORED:
            deprecated = self._deprecated
            gone = [slot for slot in slots if slot in deprecated]
            fine = [slot for slot in slots if slot not in deprecated] if gone else slots
            return [*((slot, 1.0) for slot in fine[:wanted]), *((slot, DEPRECATED) for slot in gone)][:wanted]
        chosen = slots if len(slots) <= SCORED else self._likely(words[0], slots)
        ranked = self._scored(words, chosen)
        if wanted > len(chosen) and len(chosen) < len(slots):
            taken = set(chosen)
            ranked += [(slot, IN_DESCRIPTION) for slot in slots if slot not in taken]
        return ranked[:wanted]

    def _likely(self, word: str, slots: list[int]) -> list[int]:
        """As many as are scored: those whose name is the word, then that begin with it, that have it, and others."""
        chosen: dict[int, None] = {}
        for before, behind in (("\n", "\n"), ("/", "\n"), ("\n", ""), ("/", ""), ("", "")):
            wanted = f"{before}{word}{behind}"
            for at, names in self._joined_names():
                if len(chosen) >= SCORED:
                    break
                fits = (at + line for line in _lines_with(wanted, names))
                chosen.update((slot, None) for slot in fits if _holds(slots, slot))
        if len(chosen) < SCORED:
            chosen.update(dict.fromkeys(slots[: 2 * SCORED]))
        return list(chosen)[:SCORED]

    def _joined_names(self) -> Iterator[tuple[int, str]]:
        """The names of all packages in long strings, a line each, with the slot of the first."""
        gil = GilReleaser()
        for at in range(0, len(self._texts), STRIDE):
            names = self._names.get(at)
            if names is None:
                lines = [text.partition("\n")[0] for text in self._texts[at : at + STRIDE]]
                names = self._names[at] = "\n".join(["", *lines, ""])
            yield at, names
            gil.release_if_due()

    def _scored(self, words: Sequence[str], slots: Sequence[int]) -> list[tuple[int, float]]:
        texts, downloads, keys, gil = self._texts, self._downloads, self._keys, GilReleaser()
        scored: list[tuple[float, int, str, int]] = []
        for slot in slots:
            fit = 1.0 + _fits(words, texts[slot])
            fit *= DEPRECATED if slot in self._deprecated else 1.0
            scored.append((-fit, -downloads[slot], keys[slot], slot))
            gil.release_if_due()
        scored.sort()
        return [(slot, -fit) for fit, _, _, slot in scored]


def _only(slots: Sequence[int], texts: Sequence[str], fits: Callable[[str], object]) -> list[int]:
    """Those of the slots whose text fits, with pauses in between."""
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
    The numbers, from 0, of the lines that have a text, with the line feeds before and behind each.

    There is a line feed before the first line and behind the last.
    """
    line, counted, at = -1, 0, names.find(wanted)
    while at >= 0:
        line += names.count("\n", counted, at + 1)
        counted = at + 1
        yield line
        at = names.find(wanted, names.find("\n", counted))


def _holds(slots: Sequence[int], slot: int) -> bool:
    """Whether a slot is among others, which are in order."""
    at = bisect_left(slots, slot)
    return at < len(slots) and slots[at] == slot


def _bare(name: str) -> str:
    """A name without its scope."""
    return name.partition("/")[2] if name.startswith("@") else name


def _fits(words: Sequence[str], text: str) -> float:
    name, _, rest = text.partition("\n")
    keywords, _, description = rest.partition("\n")
    bare = _bare(name)
    return sum(_fit(word, name, bare, keywords, description) for word in words)


def _fit(word: str, name: str, bare: str, keywords: str, description: str) -> float:
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

"""Content negotiation: Accept and Accept-Encoding (RFC 9110 sections 12.4.2, 12.5.1, 12.5.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from attrs import frozen

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUALITY = re.compile(rb"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")
_PARAMETER = re.compile(rb"[ \t]*;[ \t]*(?:(%s)=(?:\"((?:[^\"\\]|\\.)*)\"|(%s)))?" % (_TOKEN, _TOKEN))
_MEDIA_RANGE = re.compile(rb"[ \t]*(%s)/(%s)" % (_TOKEN, _TOKEN))
_CODING = re.compile(rb"[ \t]*(%s)" % _TOKEN)
_SEPARATOR = re.compile(rb"[ \t]*(?:,|$)")
_NEXT = re.compile(rb"[^,]*(?:,|$)")

# Clients send the same few headers again and again; longer ones are not cached.
_CACHE_SIZE = 512
_LONGEST_CACHED = 1024
_LONGEST_READ = 2048  # bytes; what follows is not read, since each member takes some microseconds

Parameters = frozenset[tuple[bytes, bytes]]


@frozen
class Preference:
    """
    One member of the list: a media range or a coding in lower case, its parameters, and a weight from 0 to 1000.

    0 means "not acceptable".
    """

    name: bytes
    weight: int
    parameters: Parameters = frozenset()

    @property
    def precision(self) -> int:
        """The higher, the more specific the range (section 12.5.1)."""
        if self.name == b"*/*":
            return 0
        return 1 if self.name.endswith(b"/*") else 2 + len(self.parameters)

    def covers(self, media_type: bytes, parameters: Parameters) -> bool:
        """Whether this range speaks of ``media_type`` (lower case, without parameters)."""
        if self.name == b"*/*":
            return True
        if self.name.endswith(b"/*"):
            return media_type.startswith(self.name[:-1])
        return media_type == self.name and self.parameters <= parameters


def best_media_type(accept: bytes | None, offers: Sequence[bytes]) -> bytes | None:
    """
    The offer that the client prefers, the first of equals; None when it accepts none of them.

    Without an Accept field, or with one that holds nothing readable, that is the first offer.
    """
    if not offers:
        return None
    if accept is None:
        return offers[0]
    if len(accept) > _LONGEST_CACHED:
        return _choose_media_type(accept, tuple(offers))
    return _cached_media_type(accept, tuple(offers))


def accepts(accept: bytes | None, media_type: bytes) -> bool:
    """Whether the client takes ``media_type`` at all."""
    return best_media_type(accept, (media_type,)) is not None


def named_media_types(accept: bytes | None, offers: Iterable[bytes]) -> list[bytes]:
    """The offers that the client asks for by their full names, wildcards not counted."""
    entries = [each for each in parse_accept(accept or b"") if each.weight and each.precision >= 2]
    asked = ((each, *_offer(each)) for each in offers)
    return [each for each, name, parameters in asked if any(entry.covers(name, parameters) for entry in entries)]


def names_media_type(accept: bytes | None, media_type: bytes) -> bool:
    """Whether the client asks for ``media_type`` in this way."""
    return bool(named_media_types(accept, (media_type,)))


def best_encoding(accept_encoding: bytes | None, offers: Sequence[bytes]) -> bytes | None:
    """
    The content coding that the client prefers among ``offers``, the first of equals.

    ``b"identity"`` stands for no coding; it is acceptable unless excluded, and loses against any other offer of the
    same weight that is listed before it. Without the field only ``identity`` is used, as most clients that say
    nothing decode nothing. None when nothing is acceptable.
    """
    if accept_encoding is None:
        return b"identity" if b"identity" in offers else None
    if len(accept_encoding) > _LONGEST_CACHED:
        return _choose_encoding(accept_encoding, tuple(offers))
    return _cached_encoding(accept_encoding, tuple(offers))


def parse_accept(text: bytes) -> list[Preference]:
    """The media ranges of an Accept field; members that do not follow the grammar are left out."""
    return _parse_list(text, _MEDIA_RANGE)


def parse_accept_encoding(text: bytes) -> list[Preference]:
    """The codings of an Accept-Encoding field; members that do not follow the grammar are left out."""
    return _parse_list(text, _CODING)


def _parse_list(text: bytes, grammar: re.Pattern[bytes]) -> list[Preference]:
    found: list[Preference] = []
    at = 0
    if len(text) > _LONGEST_READ:
        text = text[:_LONGEST_READ].rpartition(b",")[0]
    while at < len(text):
        match = grammar.match(text, at)
        if match is not None:
            weight, parameters, end = _parse_parameters(text, match.end())
            separator = _SEPARATOR.match(text, end)
            if separator is not None:
                if weight is not None:
                    found.append(Preference(b"/".join(match.groups()).lower(), weight, parameters))
                at = separator.end()
                continue
        skipped = _NEXT.match(text, at)
        assert skipped is not None
        at = skipped.end()
    return found


def _parse_parameters(text: bytes, at: int) -> tuple[int | None, Parameters, int]:
    """Weight (None when malformed), parameters before it, and where they end; what follows the weight is ignored."""
    weight: int | None = 1000
    parameters: set[tuple[bytes, bytes]] = set()
    weighed = False
    while (match := _PARAMETER.match(text, at)) is not None:
        at = match.end()
        if match[1] is None or weighed:
            continue
        name = match[1].lower()
        value = match[3] if match[3] is not None else re.sub(rb"\\(.)", rb"\1", match[2])
        if name == b"q":
            weighed = True
            weight = _parse_weight(value)
        else:
            parameters.add((name, value.lower()))
    return weight, frozenset(parameters), at


def _parse_weight(value: bytes) -> int | None:
    if not _QUALITY.fullmatch(value):
        return None
    whole, _, fraction = value.partition(b".")
    return int(whole) * 1000 + int((fraction + b"000")[:3])


@lru_cache(maxsize=1024)
def _offer(media_type: bytes) -> tuple[bytes, Parameters]:
    match = _MEDIA_RANGE.match(media_type)
    if match is None:
        raise ValueError(f"{media_type!r} is no media type")
    _, parameters, _ = _parse_parameters(media_type, match.end())
    return b"/".join(match.groups()).lower(), parameters


def _choose_media_type(accept: bytes, offers: tuple[bytes, ...]) -> bytes | None:
    preferences = sorted(parse_accept(accept), key=lambda entry: -entry.precision)
    if not preferences:
        return offers[0]

    def weight(offer: bytes) -> int:
        name, parameters = _offer(offer)
        return next((entry.weight for entry in preferences if entry.covers(name, parameters)), 0)

    return _heaviest({offer: weight(offer) for offer in offers})


def _choose_encoding(accept: bytes, offers: tuple[bytes, ...]) -> bytes | None:
    weights = {entry.name: entry.weight for entry in parse_accept_encoding(accept)}
    if b"gzip" not in weights and b"x-gzip" in weights:
        weights[b"gzip"] = weights[b"x-gzip"]  # section 8.4.1.3: the same coding

    def weight(offer: bytes) -> int:
        if offer in weights:
            return weights[offer]
        if offer == b"identity":
            # Acceptable unless "*" excludes it, but less than anything that is asked for (section 12.5.3).
            return 1 if weights.get(b"*", 1) else 0
        return weights.get(b"*", 0)

    return _heaviest({offer: weight(offer) for offer in offers})


def _heaviest(weights: Mapping[bytes, int]) -> bytes | None:
    if not weights:
        return None
    best = max(weights, key=lambda offer: weights[offer])
    return best if weights[best] else None


_cached_media_type = lru_cache(maxsize=_CACHE_SIZE)(_choose_media_type)
_cached_encoding = lru_cache(maxsize=_CACHE_SIZE)(_choose_encoding)

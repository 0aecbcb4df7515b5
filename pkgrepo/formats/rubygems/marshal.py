"""
A writer and a reader of Ruby's Marshal format, version 4.8, for the values that gemspecs and lists of gems have.

A stream is the two bytes of the version and one value. A symbol is written with its name where it is first used, and
then as its number, counted in each stream from 0. Objects that occur twice are written twice: links between them are
optional. Ruby documents the format in ``doc/marshal.rdoc``.

The reader makes nothing of the classes that a stream names: an object becomes a dict of its variables, a Gem::Version
``{"version": text}`` and a Gem::Requirement ``{"requirements": bounds}``, as in the YAML of a gem. A value takes at
least one byte and a link to an earlier value copies nothing, so a stream costs memory and time in proportion to its
size.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pkgrepo.errors import Invalid

VERSION: Final = b"\x04\x08"
NIL: Final = b"0"
TRUE: Final = b"T"
FALSE: Final = b"F"

_MICROSECOND_FORMAT: Final = 1 << 31  # of a dumped Time: fields of a calendar date, see time.c of Ruby
_UTC: Final = 1 << 30
_FIRST_YEAR: Final = 1900
_LAST_YEAR: Final = _FIRST_YEAR + 0xFFFF

MOST_DEPTH: Final = 64
_WRAPPED: Final[Mapping[str, str]] = {"Gem::Version": "version", "Gem::Requirement": "requirements"}


def integer(number: int) -> bytes:
    """
    A number without its type, as lengths and integers have it.

    :raises OverflowError: it does not fit into 30 bits, as in Ruby's own integers of this form
    """
    if not -(1 << 30) <= number < 1 << 30:
        raise OverflowError(f"{number} is no Marshal fixnum")
    if number == 0:
        return b"\x00"
    if 0 < number <= 122:
        return bytes((number + 5,))
    if -123 <= number < 0:
        return bytes(((number - 5) & 255,))
    count = next(size for size in range(1, 5) if -(1 << 8 * size) <= number < 1 << 8 * size)
    head = count if number > 0 else 256 - count
    return bytes((head,)) + (number & ((1 << 8 * count) - 1)).to_bytes(count, "little")


def counted(data: bytes) -> bytes:
    """Bytes after their length."""
    return integer(len(data)) + data


def array(values: Sequence[bytes]) -> bytes:
    """An array of values that are written already, in their order in the stream."""
    return b"[" + integer(len(values)) + b"".join(values)


class Stream:
    """The values of one stream; each method returns a value's bytes, and they must be joined in the order of calls."""

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        self._symbols = {name: number for number, name in enumerate(symbols)}

    def symbol(self, name: str) -> bytes:
        """A symbol."""
        number = self._symbols.get(name)
        if number is not None:
            return b";" + integer(number)
        self._symbols[name] = len(self._symbols)
        return b":" + counted(name.encode())

    def string(self, text: str) -> bytes:
        """A string in UTF-8."""
        return b'I"' + counted(text.encode()) + integer(1) + self.symbol("E") + TRUE

    def optional_string(self, text: str | None) -> bytes:
        """A string, or nil."""
        return NIL if text is None else self.string(text)

    def strings(self, texts: Sequence[str]) -> bytes:
        """An array of strings."""
        return array([self.string(text) for text in texts])

    def string_map(self, pairs: Mapping[str, str]) -> bytes:
        """A hash of strings."""
        values = [self.string(text) for pair in pairs.items() for text in pair]
        return b"{" + integer(len(pairs)) + b"".join(values)

    def utc_day(self, day: dt.date) -> bytes:
        """A Time: midnight of a day, UTC. A year that the form cannot express becomes the nearest one that it can."""
        year = min(max(day.year, _FIRST_YEAR), _LAST_YEAR) - _FIRST_YEAR
        first = _MICROSECOND_FORMAT | _UTC | year << 14 | (day.month - 1) << 10 | day.day << 5
        data = first.to_bytes(4, "little") + bytes(4)
        zone = b'I"' + counted(b"UTC")
        return b"".join(
            (
                b"Iu",
                self.symbol("Time"),
                counted(data),
                integer(1),
                self.symbol("zone"),
                zone,
                integer(1),
                self.symbol("E"),
                FALSE,  # US-ASCII
            )
        )

    def version(self, number: str) -> bytes:
        """A Gem::Version."""
        return b"U" + self.symbol("Gem::Version") + b"[" + integer(1) + self.string(number)

    def requirement(self, pairs: Sequence[tuple[str, str]]) -> bytes:
        """A Gem::Requirement, from pairs of operator and version number."""
        head = b"U" + self.symbol("Gem::Requirement") + b"[" + integer(1)
        return head + array([b"[" + integer(2) + self.string(sign) + self.version(number) for sign, number in pairs])

    def object_head(self, name: str, variables: int) -> bytes:
        """The start of an object, which its variables follow: a symbol and a value each."""
        return b"o" + self.symbol(name) + integer(variables)


def read_value(data: bytes) -> Any:
    """The value of a stream. :raises Invalid: it is damaged, or has something that no gemspec has"""
    return _Reader(data).value()


def read_array(data: bytes) -> Iterator[Any]:
    """The elements of the array that a stream has, one at a time. :raises Invalid: see L{read_value}"""
    reader = _Reader(data)
    for _ in range(reader.begin_array()):
        yield reader.value()


class UserDefined:
    """What a class wrote that makes a string of itself: the name of the class, and the bytes."""

    __slots__ = ("data", "name")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data


class _Reader:
    def __init__(self, data: bytes) -> None:
        if not data.startswith(VERSION):
            raise Invalid("it is not in Ruby's Marshal format 4.8")
        self._data = data
        self._at = len(VERSION)
        self._depth = 0
        self._symbols: list[str] = []
        self._objects: list[Any] = []
        self._kinds: Mapping[int, Callable[[], Any]] = {
            ord("0"): lambda: None,
            ord("T"): lambda: True,
            ord("F"): lambda: False,
            ord("i"): self._integer,
            ord(":"): self._new_symbol,
            ord(";"): self._old_symbol,
            ord('"'): self._string,
            ord("["): self._array,
            ord("{"): self._hash,
            ord("o"): self._object,
            ord("U"): self._user_marshal,
            ord("u"): self._user_defined,
            ord("I"): self._with_variables,
            ord("f"): self._float,
            ord("l"): self._long,
            ord("@"): self._link,
        }

    def begin_array(self) -> int:
        """The number of elements of the array that begins here."""
        if self._byte() != ord("["):
            raise Invalid("it is no array")
        self._objects.append(None)  # nothing in it links to the whole
        return self._length()

    def value(self) -> Any:
        """The next value."""
        kind = self._kinds.get(self._byte())
        if kind is None:
            raise Invalid("it has a value of a type that gemspecs do not have")
        if self._depth >= MOST_DEPTH:
            raise Invalid("its values are nested too deeply")
        self._depth += 1
        value = kind()
        self._depth -= 1
        return value

    # The parts of values

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise Invalid("it ends too early")
        self._at += 1
        return self._data[self._at - 1]

    def _raw(self) -> bytes:
        count = self._length()
        if count > len(self._data) - self._at:
            raise Invalid("it ends too early")
        self._at += count
        return self._data[self._at - count : self._at]

    def _length(self) -> int:
        count = self._integer()
        if count < 0:
            raise Invalid("it has a negative length")
        return count

    def _integer(self) -> int:
        first = self._byte()
        if first > 127:
            first -= 256
        if -5 < first < 5:
            count = abs(first)
            if count > len(self._data) - self._at:
                raise Invalid("it ends too early")
            self._at += count
            found = int.from_bytes(self._data[self._at - count : self._at], "little")
            return found if first >= 0 else found - (1 << 8 * count)
        return first - 5 if first > 0 else first + 5

    def _symbol(self) -> str:
        """A symbol where only one can be."""
        kind = self._byte()
        if kind == ord(":"):
            return self._new_symbol()
        if kind == ord(";"):
            return self._old_symbol()
        raise Invalid("it has another value where a name belongs")

    def _skip_variables(self) -> None:
        for _ in range(self._length()):
            self._symbol()
            self.value()

    def _entered(self, value: Any) -> Any:
        """Count a value to which links may lead."""
        self._objects.append(value)
        return value

    # By type

    def _new_symbol(self) -> str:
        self._symbols.append(self._raw().decode("utf-8", "replace"))
        return self._symbols[-1]

    def _old_symbol(self) -> str:
        number = self._length()
        if number >= len(self._symbols):
            raise Invalid("it has a symbol that was not named before")
        return self._symbols[number]

    def _link(self) -> Any:
        number = self._length()
        if number >= len(self._objects):
            raise Invalid("it has a link to nothing")
        return self._objects[number]

    def _string(self) -> str:
        found: str = self._entered(self._raw().decode("utf-8", "replace"))
        return found

    def _array(self) -> list[Any]:
        found: list[Any] = self._entered([])
        found.extend(self.value() for _ in range(self._length()))
        return found

    def _hash(self) -> dict[str, Any]:
        """A hash; what has another key than a text is left out."""
        found: dict[str, Any] = self._entered({})
        for _ in range(self._length()):
            key, value = self.value(), self.value()
            if isinstance(key, str):
                found[key] = value
        return found

    def _object(self) -> dict[str, Any]:
        self._symbol()
        found: dict[str, Any] = self._entered({})
        for _ in range(self._length()):
            name = self._symbol().removeprefix("@")
            found[name] = self.value()
        return found

    def _user_marshal(self) -> dict[str, Any]:
        """An object that is made of one value: of an array with one element, in the classes that are known."""
        name = self._symbol()
        found: dict[str, Any] = self._entered({})
        value = self.value()
        if isinstance(value, list) and len(value) == 1:
            found[_WRAPPED.get(name, "value")] = value[0]
        return found

    def _user_defined(self) -> UserDefined:
        found: UserDefined = self._entered(UserDefined(self._symbol(), self._raw()))
        return found

    def _with_variables(self) -> Any:
        if (
            self._data[self._at : self._at + 1] == b"u"
        ):  # it is counted after its variables, as Ruby's ``_load`` is called
            self._at += 1
            found = UserDefined(self._symbol(), self._raw())
            self._skip_variables()
            return self._entered(found)
        value = self.value()
        self._skip_variables()
        return value

    def _float(self) -> float:
        try:
            return float(self._entered(self._raw()))
        except ValueError:
            raise Invalid("it has a number that is none") from None

    def _long(self) -> int:
        sign = self._byte()
        count = 2 * self._length()
        if count > len(self._data) - self._at:
            raise Invalid("it ends too early")
        self._at += count
        found = int.from_bytes(self._data[self._at - count : self._at], "little")
        return int(self._entered(-found if sign == ord("-") else found))

"""
A reader of Ruby's Marshal format, version 4.8, for the gemspecs and lists of gems of upstreams.

Nothing is made of classes that a stream names: an object becomes a dict of its variables, a Gem::Version
``{"version": text}`` and a Gem::Requirement ``{"requirements": bounds}``, as in the YAML of a gem. A value takes at
least one byte and a link to an earlier value copies nothing, so a stream costs memory and time in proportion to its
size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pkgrepo.errors import Invalid

from .marshal import VERSION

MOST_DEPTH: Final = 64

_WRAPPED: Final[Mapping[str, str]] = {"Gem::Version": "version", "Gem::Requirement": "requirements"}


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

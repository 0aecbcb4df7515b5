"""What is wrong with a JSON text is told in our own words, whichever parser noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.strict_json import ERRORS, MOST_LEVELS, check_value_count, decode_as, decode_json, describe

HUGE = b'{"a": ' + b"1" * 5000 + b"}"
WORDS = ("utf-8-sig", "codec", "sys.", "set_int", "recursion", "Errno", "Traceback", "char ")


@pytest.mark.parametrize("parse", [msgspec.json.decode, json.loads, lambda text: json.loads(text.decode())])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a": "\xff"}', "not UTF-8 near byte 7"),
        (b"[" * 100_000, "nested too deeply"),
        (HUGE, ""),
        (b'{"a":1,}', "near byte"),
        (b'{"a": "\\ud800', ""),
        (b"{", "near byte"),
        (b"", "near byte"),
    ],
)
def test_no_word_of_the_interpreter_is_in_a_sentence(parse: Any, text: bytes, told: str) -> None:
    try:
        parse(text)
    except ERRORS as error:
        found = describe(text, error)
        assert told in found
        assert not any(word in found for word in WORDS), found
        assert len(found) < 120
    else:
        assert text.startswith(b"\xef\xbb\xbf"), "json looks through a mark, and nothing else is JSON"


@pytest.mark.parametrize("text", [b"[1,2,3]", b'[{"a":1},{}]', b"[[[[]]]]", b'{"a":1,"b":[1],"c":""}'])
def test_values_are_counted(text: bytes) -> None:
    check_value_count(text, 4, "it")
    with pytest.raises(Invalid, match="it has more than 2 values"):
        check_value_count(text, 2, "it")


@pytest.mark.parametrize(
    "read", [decode_json, lambda text: decode_as(text, object), lambda text: decode_as(text, list[Any])]
)
@pytest.mark.parametrize(
    ("begin", "middle", "end"), [(b"[", b"", b"]"), (b'[{"x":', b"[]", b"}]"), (b"[1,", b"[]", b",[]]")]
)
def test_every_version_of_python_refuses_the_same_nesting(
    read: Callable[[bytes], object], begin: bytes, middle: bytes, end: bytes
) -> None:
    def nested(levels: int) -> bytes:
        times = (levels - middle.count(b"[")) // (begin.count(b"[") + begin.count(b"{"))
        return begin * times + middle + end * times

    assert read(nested(MOST_LEVELS - 1))
    for levels in (MOST_LEVELS + 2, 9000):
        with pytest.raises(Invalid, match="it is nested too deeply"):
            read(nested(levels))

"""How many values JSON from a client has, counted before it is parsed: each costs its reader more than its bytes."""

from __future__ import annotations

from pkgrepo.errors import Invalid


def check_values(text: bytes, most: int, what: str, pointer: str = "") -> None:
    """
    Let a JSON text pass that has at most ``most`` values; ``what`` it is, for the sentence.

    Commas and opening brackets are counted, also those in strings: a bound from above, at a nanosecond a byte.

    :raises Invalid: it has more
    """
    if text.count(b",") + text.count(b"[") + text.count(b"{") > most:
        raise Invalid(f"{what} has more than {most} values", pointer)

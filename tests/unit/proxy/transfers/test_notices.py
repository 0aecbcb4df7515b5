"""What processes tell each other about transfers survives the way, and nothing else does."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid, NotFound, StorageFull, UpstreamLimited, UpstreamTimeout, UpstreamUnavailable
from pkgrepo.proxy.transfers.notices import (
    Alive,
    Ended,
    Growing,
    Verified,
    Wanted,
    decode,
    decode_error,
    encode,
    encode_error,
)

PLACE = (7, "a/b.tgz")
VERIFIED = Verified(PLACE, "0" * 32, "ab" * 32, 5, "ab/cd", {"sha1": "x"}, {"route": "main"})


@pytest.mark.parametrize(
    "notice",
    [
        Wanted(PLACE, "me"),
        Alive(PLACE),
        Growing(PLACE, "0" * 32, 3, 5, '"e"', True, {"etag": '"e"'}, {}),
        VERIFIED,
        Ended(PLACE, VERIFIED, None),
        Ended(PLACE, None, ("NotFound", ["file", "x"])),
    ],
    ids=lambda notice: type(notice).__name__,
)
def test_notices_arrive_as_they_were_sent(notice: object) -> None:
    assert decode(encode(notice)) == notice


@pytest.mark.parametrize(
    "error",
    [
        NotFound("file", "a"),
        StorageFull("main"),
        UpstreamTimeout("main", "it is slow"),
        UpstreamUnavailable("main", "it is down", 5),
        UpstreamLimited("main", "it is busy", 9),
    ],
    ids=lambda error: type(error).__name__,
)
def test_readers_of_a_follower_get_the_error_of_the_leader(error: Exception) -> None:
    ended = decode(encode(Ended(PLACE, None, encode_error(error))))
    found = decode_error(ended.error)
    assert (type(found), str(found)) == (type(error), str(error))


@pytest.mark.parametrize("error", [Invalid("no"), ValueError("no"), KeyboardInterrupt()], ids=["own", "bug", "stop"])
def test_other_errors_are_not_passed_on(error: BaseException) -> None:
    assert encode_error(error) is None


def test_an_unknown_error_makes_a_follower_fetch_the_file() -> None:
    assert decode_error(("Newer", [])) is None
    assert decode_error(("NotFound", ["too", "many", "values"])) is None

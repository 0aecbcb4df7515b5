"""The incremental base64 decoder, compared with the standard library."""

import base64
import binascii

import pytest

from pkgrepo.formats.npm.publish.base64_decoder import Base64Decoder, Base64Error

GOOD = base64.b64encode(bytes(range(1, 13)))
MEANT_OTHERWISE = b'= \\"'  # padding, a blank, the beginning of an escape, the end of the string


@pytest.mark.parametrize("at", range(len(GOOD)))
def test_invalid_characters_are_refused_at_their_offset(at: int) -> None:
    for foreign in set(range(256)) - set(MEANT_OTHERWISE):
        text = GOOD[:at] + bytes((foreign,)) + GOOD[at + 1 :]
        try:
            expected = binascii.a2b_base64(text, strict_mode=True)
        except binascii.Error:
            with pytest.raises(Base64Error) as caught:
                Base64Decoder().feed(text, last=True)
            assert caught.value.at == at
        else:
            assert Base64Decoder().feed(text) == expected


@pytest.mark.parametrize("size", [1, 3, 4, 5, 16])
def test_pieces_of_any_size_decode_alike(size: int) -> None:
    decoder = Base64Decoder()
    text = base64.b64encode(b"what was sent")
    decoded = b"".join(decoder.feed(text[at : at + size]) for at in range(0, len(text), size))
    assert decoded + decoder.feed(b"", last=True) == b"what was sent"


@pytest.mark.parametrize("text", [b"AQID\\/\\/\\/\\/", b"AQ ID////", b"AQID\\n////", b"AQ\\u0049D////"])
def test_escapes_and_blanks_change_nothing(text: bytes) -> None:
    assert Base64Decoder().feed(text, last=True) == bytes((1, 2, 3, 255, 255, 255))

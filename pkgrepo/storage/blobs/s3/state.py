"""The state of an upload into a bucket between two requests, which the catalog stores."""

from __future__ import annotations

import msgspec

VERSION = 1


class SuspendedUpload(msgspec.Struct, frozen=True, kw_only=True, tag="s3", tag_field="store"):
    """
    ``in_parts`` of its ``offset`` bytes are the first ``parts`` of the parts upload ``parts_id``, the ``rest_size``
    others the object ``rest``.

    ``digests`` are those of all bytes, by name. Values are empty if no process has seen all bytes: then the object is
    read again when it is sealed.
    """

    version: int = VERSION
    offset: int
    limit: int | None
    digests: dict[str, str]
    parts_id: str | None = None
    parts: int = 0
    in_parts: int = 0
    rest: str | None = None
    rest_size: int = 0

    @property
    def is_known(self) -> bool:
        """Whether the digests are known."""
        return all(self.digests.values())

    def encode(self) -> bytes:
        """Return at most 4 KiB."""
        return msgspec.json.encode(self)


def decode_state(data: bytes) -> SuspendedUpload:
    """
    Return the state that ``encode`` wrote.

    :raises ValueError: the data has another form
    """
    state = msgspec.json.decode(data, type=SuspendedUpload)  # its errors are ValueErrors
    sizes = (state.offset, state.parts, state.in_parts, state.rest_size)
    if (
        state.version != VERSION
        or "sha256" not in state.digests
        or min(sizes) < 0
        or state.in_parts + state.rest_size != state.offset
        or (state.parts > 0) != (state.parts_id is not None)
        or (state.rest_size > 0) != (state.rest is not None)
    ):
        raise ValueError("not the state of an upload")
    return state

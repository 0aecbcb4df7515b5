"""What a store says of an object that is there already."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import StorageFailed
from pkgrepo.s3.bucket import Bucket
from pkgrepo.s3.requests import WholeResponse, digest_body

BODY = digest_body(b"twelve bytes")
OBJECT = "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
LIST = "<ListBucketResult><IsTruncated>false</IsTruncated>{objects}</ListBucketResult>"


class Store:
    """Says that each new object is there, and lists this."""

    def __init__(self, objects: str) -> None:
        self._objects = objects

    async def send(self, method: str, *_: Any) -> WholeResponse:
        if method == "PUT":
            return WholeResponse(412, {}, b"<Error><Code>PreconditionFailed</Code></Error>")
        return WholeResponse(200, {}, LIST.format(objects=self._objects).encode())


def bucket(objects: str) -> Bucket:
    requests: Any = Store(objects)
    return Bucket(requests, prefix="p/", storage="main")


async def test_an_earlier_try_whose_answer_was_lost_has_stored_the_object() -> None:
    assert await bucket(OBJECT.format(key="p/k", size=12)).put("k", BODY) is False


@pytest.mark.parametrize(
    "objects", ["", OBJECT.format(key="p/kk", size=12)], ids=["it lists none", "it lists another one"]
)
async def test_an_object_that_is_not_there_was_not_stored_whatever_the_store_says(objects: str) -> None:
    """A store that was killed in the middle of a write may refuse the next one, and have no object."""
    with pytest.raises(StorageFailed):
        await bucket(objects).put("k", BODY)


async def test_an_object_of_another_size_is_not_that_of_an_earlier_try() -> None:
    with pytest.raises(StorageFailed):
        await bucket(OBJECT.format(key="p/k", size=3)).put("k", BODY)

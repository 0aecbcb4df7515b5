"""The state of an upload into a bucket, and the names of objects."""

import pytest

from pkgrepo.storage.blobs.s3 import names
from pkgrepo.storage.blobs.s3.parts import part_size
from pkgrepo.storage.blobs.s3.settings import AccessKey, BucketPlace
from pkgrepo.storage.blobs.s3.state import SuspendedUpload, decode_state

STATE = SuspendedUpload(
    offset=30, limit=None, digests={"sha256": "ab"}, parts_id="p", parts=2, in_parts=20, rest="r", rest_size=10
)
ID = "0123456789abcdef" * 2


def test_a_state_is_read_back():
    assert decode_state(STATE.encode()) == STATE
    assert STATE.is_known
    assert not SuspendedUpload(offset=0, limit=None, digests={"sha256": ""}).is_known


@pytest.mark.parametrize(
    "change",
    [
        (b'"offset":30', b'"offset":31'),
        (b'"parts":2', b'"parts":0'),
        (b'"rest":"r"', b'"rest":null'),
        (b'"sha256"', b'"sha1"'),
        (b'"version":1', b'"version":2'),
        (b'"store":"s3"', b'"store":"disk"'),
        (b"{", b""),
    ],
)
def test_another_state_is_refused(change):
    data = STATE.encode().replace(*change)
    assert data != STATE.encode()
    with pytest.raises(ValueError, match=r"."):
        decode_state(data)


def test_keys_tell_their_upload():
    assert names.is_locator(names.parts_locator(ID))
    assert names.upload_of_parts(names.BLOBS + names.parts_locator(ID)) == ID
    assert names.upload_of_rest(names.new_rest_key(ID)) == ID
    assert names.new_rest_key(ID) != names.new_rest_key(ID)


@pytest.mark.parametrize("key", ["", "format", "blobs/", f"blobs/ff/{ID}", f"blobs/01/{ID}/x", f"other/01/{ID}"])
def test_other_keys_tell_none(key):
    assert names.upload_of_parts(key) is None
    assert names.upload_of_rest(key) is None


def test_ten_thousand_parts_hold_any_blob():
    assert part_size(1) == part_size(1000) == 8 * 1024**2
    assert part_size(1001) == 16 * 1024**2
    assert sum(part_size(number) for number in range(1, 10_001)) > 5 * 1024**4
    assert part_size(10_000) <= 5 * 1024**3


def test_the_bucket_is_in_the_path_or_in_the_host_name():
    place = BucketPlace(endpoint="https://s3.example.com", bucket="b", region="r")
    assert place.base_url == "https://s3.example.com/b"
    place = BucketPlace(endpoint="https://s3.example.com:9000", bucket="b", region="r", path_style=False)
    assert place.base_url == "https://b.s3.example.com:9000"


def test_a_secret_is_not_shown():
    assert "hidden" not in repr(BucketPlace(endpoint="e", bucket="b", region="r", key=AccessKey("id", "hidden")))

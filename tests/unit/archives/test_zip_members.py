"""Members of large zip archives, read one after the other."""

import io
import zipfile

import pytest

from pkgrepo.archives.source import Source
from pkgrepo.archives.zip_members import iter_members
from pkgrepo.errors import Invalid


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target.getvalue()


def members(data: bytes, **limits: int) -> dict[str, bytes | None]:
    return dict(iter_members(Source(data, "all.zip"), ".json", 100, **limits))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_members_with_the_ending_are_read(method: int) -> None:
    data = packed({"a.json": b"1", "b/c.json": b"", "README": b"no", "long.json": b"x" * 101}, method)
    assert members(data) == {"a.json": b"1", "b/c.json": b"", "long.json": None}
    assert members(packed({})) == {}


def test_damaged_archives_are_refused() -> None:
    data = packed({"a.json": b'{"a": 1}' * 8})
    for broken in (b"no zip", data[:-30], data.replace(b"PK\x03\x04", b"PK\x03\x05"), data[:40] + b"\0\0" + data[42:]):
        with pytest.raises(Invalid, match=r"all\.zip"):
            members(broken)


def test_bombs_are_refused() -> None:
    data = packed({f"{n}.json": b" " * 90 for n in range(5)})
    lying = data.replace((90).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(Invalid, match="damaged"):
        members(lying)
    with pytest.raises(Invalid, match="more than 360 bytes"):
        members(data, unpacked=4 * 90)
    with pytest.raises(Invalid, match="more than 4 entries"):
        members(data, entries=4)


def test_members_with_some_beginning_come_first_the_last_before_others() -> None:
    data = packed(dict.fromkeys(("b.json", "M-1.json", "sub/M-2.json", "M-3.txt", "a.json", "M/c.json"), b"1"))
    found = [name for name, _ in iter_members(Source(data, "all.zip"), ".json", 100, first="M-")]
    assert found == ["sub/M-2.json", "M-1.json", "b.json", "a.json", "M/c.json"]

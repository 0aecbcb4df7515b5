"""Nothing of a bundle is used that is damaged, truncated, unsigned, or not what its signed list says."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pkgrepo.archives import bundle_file
from pkgrepo.archives.bundle_file import BEFORE, FACTS, FORM, Content, Facts, Writer, read_whole
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.signed_lists import Listed, Manifest, render_list

KEY, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
BLOCK = 512


def pem(key: Ed25519PrivateKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def make(
    files: Mapping[str, bytes],
    *,
    key: Ed25519PrivateKey | None = KEY,
    listed: Mapping[str, Listed] | None = None,
    more: Callable[[Writer], object] = lambda _: None,
    form: str = FORM,
) -> bytes:
    """A bundle of one repository; ``listed`` are further lines of its list, ``more`` adds members."""
    out = io.BytesIO()
    writer = Writer(out)
    found = {path: writer.add_blob(data) for path, data in files.items()}
    found[FACTS] = writer.add_blob(msgspec.json.encode(Facts(format="python")))
    found[BEFORE] = writer.add_blob(b"")
    text = render_list({**found, **(listed or {})})
    digest = hashlib.sha256(text).hexdigest()
    statement = f"{form}\nrepository main/py\nlist sha256:{digest}\nfiles {len(found)}\n"
    signature = "" if key is None else base64.b64encode(key.sign(statement.encode())).decode()
    manifest = Manifest(
        form=FORM,
        repository="main/py",
        list_sha256=digest,
        files=len(found),
        statement=statement,
        signature=signature,
        key=pem(KEY),
    )
    writer.add("repositories/0.list", text)
    writer.add("repositories/0.json", msgspec.json.encode(manifest))
    more(writer)
    writer.finish()
    return out.getvalue()


def empty() -> bytes:
    """A bundle of no repository."""
    out = io.BytesIO()
    Writer(out).finish()
    return out.getvalue()


def nested() -> bytes:
    """A bundle whose manifest has more brackets than a parser takes."""
    out = io.BytesIO()
    writer = Writer(out)
    writer.add("repositories/0.list", b"")
    writer.add("repositories/0.json", b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}")
    writer.finish()
    return out.getvalue()


GOOD = make({"a/b.whl": b"x" * 1000, "c": b""})


def read(folder: Path, data: bytes, *keys: str) -> Content:
    path = folder / "bundle.tar"
    path.write_bytes(data)
    reading = read_whole(str(path), keys or (pem(KEY),))
    try:
        (content,) = reading.contents()
        return content
    finally:
        reading.close()


def test_a_bundle_is_read_and_is_an_archive_that_tar_reads(tmp_path: Path) -> None:
    content = read(tmp_path, GOOD, pem(OTHER), pem(KEY))
    assert (content.files["a/b.whl"].size, content.files["c"].size, content.facts.format) == (1000, 0, "python")
    with tarfile.open(tmp_path / "bundle.tar") as archive:
        names = archive.getnames()
    assert names[0] == "pkgrepo-bundle"
    assert len(names) == 1 + 4 + 2 - 1  # two of its files are empty, and one blob


def test_large_sizes_have_more_digits() -> None:
    with tarfile.open(fileobj=io.BytesIO(bundle_file._header("a", 9 * 2**30))) as archive:
        member = archive.next()
    assert member is not None
    assert member.size == 9 * 2**30


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    for size in (*range(0, len(GOOD), BLOCK // 2), len(GOOD) - 1):
        with pytest.raises(Invalid):
            read(tmp_path, GOOD[:size])


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    for at in range(0, len(GOOD), 37):
        changed = bytearray(GOOD)
        changed[at] ^= 0x41
        try:
            content = read(tmp_path, bytes(changed))
        except Invalid:
            continue
        # a byte of a header that nothing is read from, or of the key that the manifest names and nobody trusts
        good = read(tmp_path, GOOD)
        assert (content.files, content.before, content.facts) == (good.files, good.before, good.facts), at


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (make({}, key=None), "not signed"),
        (make({}, key=OTHER), "none of the trusted keys"),
        (make({}, form="pkgrepo twin 1"), "none of the trusted keys"),
        (make({}, listed={"../x": Listed(0, "0" * 64)}), "no file can have"),
        (make({}, listed={"/x": Listed(0, "0" * 64)}), "no file can have"),
        (make({}, listed={"a//x": Listed(0, "0" * 64)}), "no file can have"),
        (make({}, listed={"x": Listed(0, "0" * 64)}), "lacks x"),
        (make({"x": b"1"}, listed={"x": Listed(2, hashlib.sha256(b"1").hexdigest())}), "lacks x"),
        (make({}, more=lambda writer: writer.add_blob(b"more")), "no signed list names"),
        (make({}, more=lambda writer: writer.add("blobs/" + "0" * 64, b"x")), "other bytes"),
        (make({}, more=lambda writer: writer.add("../etc/passwd", b"x")), "no bundle has"),
        (make({}, more=lambda writer: writer.add("repositories/0.list", b"")), "twice"),
        (make({}, more=lambda writer: writer.add("repositories/1.list", b"")), "signature is missing"),
        (nested(), "is damaged"),
        (empty(), "has no list"),
        (make({}) + bytes(BLOCK), "after its end"),
        (b"", "truncated"),
        (b"\x1f\x8b" + bytes(BLOCK), "malformed"),
    ],
    ids=range(18),
)
def test_others_are_refused_with_the_reason(tmp_path: Path, data: bytes, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        read(tmp_path, data)


def test_without_a_trusted_key_the_digest_of_the_key_is_said(tmp_path: Path) -> None:
    (tmp_path / "bundle.tar").write_bytes(GOOD)
    reading = read_whole(str(tmp_path / "bundle.tar"), ())
    with pytest.raises(Invalid, match=bundle_file.key_digest(pem(KEY))):
        reading.contents()
    reading.close()


def test_counts_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_file, "MOST_MEMBERS", 6)
    assert read(tmp_path, GOOD)
    monkeypatch.setattr(bundle_file, "MOST_MEMBERS", 5)
    with pytest.raises(Invalid, match="more than 5 files"):
        read(tmp_path, GOOD)


def test_lists_are_held_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make({}, more=lambda writer: writer.add("repositories/1.list", bytes(2000)))
    monkeypatch.setattr(bundle_file, "LARGEST_LIST", 2500)
    with pytest.raises(Invalid, match="are too large"):
        read(tmp_path, data)


def test_links_and_other_kinds_of_members_are_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        head = tarfile.TarInfo("pkgrepo-bundle")
        head.size = len(FORM) + 1
        archive.addfile(head, io.BytesIO(f"{FORM}\n".encode()))
        link = tarfile.TarInfo("blobs/" + "0" * 64)
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(Invalid, match="malformed"):
        read(tmp_path, out.getvalue())

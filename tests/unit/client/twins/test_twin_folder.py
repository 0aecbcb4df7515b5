"""The folder of a twin: what is written, kept and removed, and what a verification finds."""

import base64

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pkgrepo.client.twins.folder import FolderTwin, verify
from pkgrepo.client.twins.lists import write
from pkgrepo.errors import Conflict, DigestMismatch, Invalid

KEY = Ed25519PrivateKey.generate()


def pem(private: Ed25519PrivateKey) -> str:
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return private.public_key().public_bytes(serialization.Encoding.PEM, kind).decode()


def sign(digest: str, private: Ed25519PrivateKey = KEY) -> dict[str, str]:
    statement = f"pkgrepo twin 1\nrepository main/py\nlist sha256:{digest}\nfiles 1\nsigned now\n"
    signature = base64.b64encode(private.sign(statement.encode())).decode()
    return {"statement": statement, "signature": signature, "key": pem(private)}


def export(root, files, **changes):
    """Write a twin with these files. Returns how many were written, and removed."""

    async def work():
        twin = FolderTwin(root, "main/py")
        listed = {path: await write(twin, path, data, "text/plain") for path, data in files.items()}
        digest = await twin.finish(listed)
        removed = await twin.publish(listed, digest, {**sign(digest), **changes})
        await twin.close()
        return twin.written, removed

    return done(work())


def done(work):
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def test_only_what_has_changed_is_written_and_what_is_gone_is_removed(tmp_path):
    root = tmp_path / "twin"
    assert export(root, {"a/b": b"1", "a/c": b"2", "d": b"3"}) == (3, 0)
    before = (root / "d").stat().st_mtime_ns
    assert export(root, {"a/b": b"1", "d": b"3"}) == (0, 1)
    assert export(root, {"d": b"3", "e": b"4"}) == (1, 1)
    assert (root / "d").stat().st_mtime_ns == before
    assert sorted(each.name for each in root.iterdir()) == [".twin", "d", "e"]
    assert len(list((root / ".twin").iterdir())) == 3
    assert verify(root, None)[1] == []


def test_a_round_that_was_killed_leaves_the_list_and_is_continued(tmp_path):
    root = tmp_path / "twin"
    export(root, {"a": b"1"})
    twin = FolderTwin(root, "main/py")
    done(write(twin, "b", b"2", "text/plain"))
    draft = twin.draft("c")
    draft.write(b"half")
    assert [each for each in verify(root, None)[1] if "b " not in each and ".c." not in each] == []
    draft._file.close()
    done(twin.close())  # the kernel does so
    assert export(root, {"a": b"1", "b": b"2"}) == (0, 1)
    assert verify(root, None)[1] == []


def test_one_process_writes_a_twin_at_a_time(tmp_path):
    root = tmp_path / "twin"
    first = FolderTwin(root, "main/py")
    with pytest.raises(Conflict, match=f"another process writes the twin in {root} now"):
        FolderTwin(root, "main/py")
    done(first.close())
    assert export(root, {"a": b"1"}) == (1, 0)


def test_a_file_with_another_digest_is_not_kept(tmp_path):
    twin = FolderTwin(tmp_path / "twin", "main/py")
    with twin.draft("a") as draft:
        draft.write(b"other bytes")
        with pytest.raises(DigestMismatch):
            done(twin.keep("a", draft, "0" * 64))
    assert not (tmp_path / "twin" / "a").exists()


@pytest.mark.parametrize("path", ["../a", "a/../../b", "/a", "a//b", "", ".", ".twin/twin.json", "a\nb", "a\\b"])
def test_no_path_of_a_server_leads_out_of_the_folder(tmp_path, path):
    with pytest.raises(Invalid, match="is no path of a file"):
        FolderTwin(tmp_path / "twin", "main/py").draft(path)


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(Conflict, match="holds other things"):
        FolderTwin(tmp_path, "main/py")
    export(tmp_path / "twin", {"a": b"1"})
    with pytest.raises(Conflict, match="is in the twin in"):
        FolderTwin(tmp_path / "twin" / "inner", "main/other")
    with pytest.raises(Conflict, match="is the twin of main/py"):
        FolderTwin(tmp_path / "twin", "main/other")


def test_what_was_changed_afterwards_is_found(tmp_path):
    root = tmp_path / "twin"
    export(root, {"a": b"1", "b": b"2", "c": b"3"})
    (root / "a").write_bytes(b"x")
    (root / "b").unlink()
    (root / "more").write_bytes(b"")
    assert verify(root, None)[1] == ["a has other bytes", "b is missing", "more is not in the list"]


def test_a_list_that_the_server_has_not_signed_is_found(tmp_path):
    root = tmp_path / "twin"
    export(root, {"a": b"1"})
    assert verify(root, pem(KEY).encode())[1] == []
    assert verify(root, pem(Ed25519PrivateKey.generate()).encode())[1] == [
        "the signature of the list is wrong, or by another key"
    ]
    export(root, {"a": b"2"}, **sign("0" * 64))
    assert verify(root, pem(KEY).encode())[1] == ["the signature is of another list"]
    export(root, {"a": b"3"}, signature="")
    assert verify(root, None)[1] == ["the list is not signed"]
    next((root / ".twin").glob("*.list")).write_text("")
    with pytest.raises(Invalid, match="is damaged"):
        verify(root, None)

"""Publish documents, well-formed and not."""

import base64
import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.publish.envelope import Publication, read_publication
from pkgrepo.formats.npm.publish.manifest import check_announced
from pkgrepo.formats.npm.publish.scanner import PublishScanner
from tests.support.npm_packages import CLIENTS, make_publish, make_tarball
from tests.support.publish_documents import blanked, scan


def read(body: bytes, url_name: str | None = None) -> tuple[Publication, bytes]:
    scanner = PublishScanner()
    data = b"".join(event for event in scanner.feed(body) if isinstance(event, bytes))
    return read_publication(scanner.finish(), url_name), data


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ["x", "@sc/x"])
def test_documents_of_every_client_are_read(client: str, name: str) -> None:
    publication, data = read(make_publish(name, "1.0.0-rc.1", client=client, tag="beta"), name)
    assert publication.name == name
    assert publication.version.text == "1.0.0-rc.1"
    assert publication.tags == ("beta",)
    assert publication.filename == "x-1.0.0-rc.1.tgz"
    assert publication.bundle is None
    assert data == make_tarball(name, "1.0.0-rc.1")
    check_announced(publication.manifest, {each: hashlib.new(each, data).hexdigest() for each in ("sha1", "sha512")})


def test_provenance_bundle_is_read() -> None:
    publication, _ = read(make_publish("@sc/x", "1.0.0", bundle='{"mediaType":"b"}'))
    assert publication.bundle == '{"mediaType":"b"}'


@pytest.mark.parametrize("said", ["1.0.0-rc.1", "v1.0.0-rc.1", "1.0.0-rc.1+build.5"])
@pytest.mark.parametrize("attached", ["1.0.0-rc.1", "v1.0.0-rc.1", "1.0.0-rc.1+build.5"])
def test_spellings_of_one_version_are_accepted(said: str, attached: str) -> None:
    document = json.loads(make_publish("@sc/x", said, tag="beta", bundle="{}"))
    document["_attachments"] = {key.replace(said, attached): each for key, each in document["_attachments"].items()}
    publication, _ = read(json.dumps(document).encode())
    assert (publication.version.text, publication.filename) == ("1.0.0-rc.1", "x-1.0.0-rc.1.tgz")
    assert publication.tags == ("beta",)
    assert publication.bundle is not None


def change(edit: Callable[[dict[str, Any]], Any]) -> bytes:
    document = json.loads(make_publish("x", "1.0.0"))
    edit(document)
    return json.dumps(document).encode()


def test_version_is_latest_when_no_tag_is_given() -> None:
    assert read(change(lambda d: d.pop("dist-tags")))[0].tags == ("latest",)
    assert read(change(lambda d: d.update({"dist-tags": {"a": "1.0.0", "b": "1.0.0"}})))[0].tags == ("a", "b")


def test_name_may_be_given_once() -> None:
    assert read(change(lambda d: d.pop("_id")))[0].name == "x"
    assert read(change(lambda d: d.pop("name")))[0].name == "x"
    assert read(change(lambda d: (d.pop("name"), d.pop("_id"))), "x")[0].name == "x"


def rename_attachment(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda d: d.update(_attachments={name: d["_attachments"]["x-1.0.0.tgz"]})


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda d: (d.pop("name"), d.pop("_id")), "does not name the package"),
        (lambda d: d.update(name=1), "does not name the package"),
        (lambda d: d.update(_id="y"), "is of package 'y', not 'x'"),
        (lambda d: d.pop("versions"), "must have one version, and has 0"),
        (lambda d: d["versions"].update({"2.0.0": {}}), "must have one version, and has 2"),
        (lambda d: d.update(versions=[]), "must be an object"),
        (lambda d: d.update(versions={"1.0.0": []}), "is no object"),
        (lambda d: d.update(versions={"1.0": d["versions"]["1.0.0"]}), "invalid version: '1.0'"),
        (lambda d: d["versions"]["1.0.0"].update(name="y"), "manifest is of package 'y'"),
        (lambda d: d["versions"]["1.0.0"].update(version="1.0.1"), "manifest is of version '1.0.1'"),
        (lambda d: d["versions"]["1.0.0"].pop("version"), "manifest is of version nothing"),
        (lambda d: d.pop("_attachments"), "one tarball 'x-1.0.0.tgz' attached, and has none"),
        (lambda d: d.update(_attachments={"x-1.0.0.tgz": {}}), "attached, and has none"),
        (rename_attachment("y-1.0.0.tgz"), "attached, and has 'y-1.0.0.tgz'"),
        (rename_attachment("../../x-1.0.1.tgz"), "attached, and has '../../x-1.0.1.tgz'"),
        (lambda d: d["_attachments"].update({"b": {"data": "QUJD"}}), "attached, and has 'x-1.0.0.tgz' and 'b'"),
        (lambda d: d["_attachments"]["x-1.0.0.tgz"].update(length=1), "not '1' as announced"),
        (lambda d: d["_attachments"]["x-1.0.0.tgz"].update(length="x"), "not 'x' as announced"),
        (lambda d: d["_attachments"].update({"x-1.0.0.sigstore": {"data": 1}}), "no provenance bundle"),
        (lambda d: d.update({"dist-tags": {"1.x": "1.0.0"}}), "invalid tag"),
        (lambda d: d.update({"dist-tags": {"latest": "2.0.0"}}), "stands for '2.0.0'"),
        (lambda d: d.update({"dist-tags": {"latest": {}}}), "stands for nothing"),
        (lambda d: d.update({"dist-tags": {f"t{n}": "1.0.0" for n in range(101)}}), "more than 100 dist-tags"),
    ],
)
def test_contradictory_or_incomplete_document_is_refused(edit: Callable[[dict[str, Any]], Any], why: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        read(change(edit))
    assert str(caught.value).isprintable()


def test_document_for_another_address_is_refused() -> None:
    with pytest.raises(Invalid, match="is of package 'x', not 'y'"):
        read(make_publish("x", "1.0.0"), "y")


@pytest.mark.parametrize("name", ["Upper", "fs", "../x", "@sc/", "__proto__"])
def test_names_follow_the_rules_for_new_ones(name: str) -> None:
    with pytest.raises(Invalid, match="invalid package name"):
        read(make_publish(name, "1.0.0"))


JSON_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["data", "_attachments", '"', "\\", "{", '"data":"', "x.sigstore"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | JSON_TEXT,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(JSON_TEXT, children, max_size=4),
    max_leaves=20,
)
TARBALLS = st.binary(max_size=60).map(lambda data: base64.b64encode(data).decode())
ATTACHMENTS = st.dictionaries(
    JSON_TEXT,
    st.fixed_dictionaries({"data": TARBALLS}, optional={"length": st.integers(0, 9), "content_type": JSON_TEXT})
    | VALUES.filter(lambda value: not isinstance(value, dict)),
    max_size=4,
)
DOCUMENTS = st.dictionaries(JSON_TEXT.filter(lambda key: key != "_attachments"), VALUES, max_size=5)
CUTS = st.lists(st.integers(0, 10_000), max_size=8)


def spaced(value: Any, rng: random.Random) -> str:
    """JSON with blanks in all allowed places, and randomly escaped characters."""

    def blank() -> str:
        return rng.choice(["", "", " ", "\n\t", "\r\n "])

    if isinstance(value, dict):
        members = [f"{blank()}{spaced(k, rng)}{blank()}:{spaced(v, rng)}" for k, v in value.items()]
        rng.shuffle(members)
        return f"{blank()}{{{','.join(members)}{blank()}}}{blank()}"
    if isinstance(value, list):
        return f"{blank()}[{','.join(spaced(v, rng) for v in value)}{blank()}]{blank()}"
    if isinstance(value, str):
        escaped = json.dumps(value, ensure_ascii=rng.random() < 0.5)[1:-1].replace("/", rng.choice(["/", "\\/"]))
        if escaped == value and rng.random() < 0.3:
            escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 and rng.random() < 0.2 else c for c in value)
        return f'"{escaped}"'
    return f"{blank()}{json.dumps(value)}{blank()}"


@given(DOCUMENTS, ATTACHMENTS, CUTS, st.randoms(use_true_random=False))
def test_any_document_is_read_as_by_a_whole_document_parser(
    document: dict[str, Any], attached: dict[str, Any], cuts: list[int], rng: random.Random
) -> None:
    whole = {**document, "_attachments": attached}
    body = spaced(whole, rng).encode()
    scanned, attachments = scan(body, cuts)
    assert scanned.value() == blanked(json.loads(body))
    assert attachments == {
        name: base64.b64decode(each["data"])
        for name, each in attached.items()
        if isinstance(each, dict) and not name.endswith(".sigstore")
    }


def oracle(body: bytes) -> Any:
    """The result of the standard library, with the scanner's further rules; None for a refusal."""

    def once(members: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(members)
        if len(found) != len(members):
            raise ValueError("twice")
        for value in found.values():
            if value in (float("inf"), float("-inf")):
                raise ValueError("out of range")
        return found

    def never(_constant: str) -> None:
        raise ValueError("no JSON")

    try:
        document = json.loads(body.decode(), object_pairs_hook=once, parse_constant=never)
        json.dumps(document, ensure_ascii=False).encode()
        attachments = document.get("_attachments") if isinstance(document, dict) else None
        for name, each in attachments.items() if isinstance(attachments, dict) else ():
            if isinstance(each, dict) and isinstance(each.get("data"), str) and not name.endswith(".sigstore"):
                packed = each["data"].translate({ord(c): None for c in " \n\r\t"})
                if not packed.isascii() or (packed.endswith("=") and len(packed) % 4):
                    return None
                if any(
                    ord(c) < 0x20 for c in body.decode()[body.decode().index("_attachments") :] if c not in "\n\r\t"
                ):
                    return None
                base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (ValueError, RecursionError):
        return None
    return blanked(document) if isinstance(document, dict) else None


MUTATIONS = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 3), st.sampled_from(list(b'{}[]":,\\u0aA=/ \n\x00\xff-1.e'))),
    min_size=1,
    max_size=3,
)
SMALL = json.dumps(
    {
        "name": "é\n",
        "v": {"1": [1.5e3, {"t": True}]},
        "_attachments": {"a": {"data": "QUJDRA==", "length": 4}},
        "z": "\\",
    }
).encode()


@given(MUTATIONS, CUTS)
@example([(3, 0, ord("x"))], [])
def test_damaged_document_is_accepted_only_if_a_whole_document_parser_accepts_it(
    mutations: list[tuple[int, int, int]], cuts: list[int]
) -> None:
    body = bytearray(SMALL)
    for at, kind, byte in mutations:
        place = at % len(body)
        if kind == 0:
            body[place] = byte
        elif kind == 1:
            body.insert(place, byte)
        elif kind == 2:
            del body[place]
        else:
            body[place:place] = body[place : place + 7]
    expected = oracle(bytes(body))
    try:
        value = scan(bytes(body), cuts)[0].value()
    except Invalid:
        value = None
    assert value == expected


@pytest.mark.parametrize("body", [b'{"a":1e999}', b'{"a":"\\ud800"}', b'{"a":NaN}', b'{"\\ud800":1}', b'{"a":"\\x"}'])
def test_values_that_only_some_parsers_accept_are_refused(body: bytes) -> None:
    for cuts in ([], list(range(len(body)))):
        with pytest.raises(Invalid, match="body is not"):
            scan(body, cuts)[0].value()

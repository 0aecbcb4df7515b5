"""Any document is accepted, and read, by the scanner as by a parser of whole documents."""

import base64
import json
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from tests.support.publish_documents import blanked, scan

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

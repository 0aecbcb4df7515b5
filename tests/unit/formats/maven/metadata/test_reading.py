"""Reading of uploaded metadata: what they say, and what is refused in bounded time."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid, TooLarge
from pkgrepo.formats.maven.metadata.reading import (
    LARGEST,
    MOST_ELEMENTS,
    MOST_ENTRIES,
    OTHERS_SIZE,
    TEXT_SIZE,
    Other,
    Plugin,
    ReadMetadata,
    SnapshotFile,
    read_metadata,
)

WHOLE = """<?xml version="1.0" encoding="{encoding}"?>
<metadata xmlns="http://maven.apache.org/METADATA/1.1.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://maven.apache.org/METADATA/1.1.0 x.xsd" modelVersion="1.1.0">
  <groupId> com.example </groupId><artifactId>k\u00e4se</artifactId><version>1-SNAPSHOT</version>
  <!-- a comment --><?an instruction?>
  <versioning><latest>2</latest><release>1</release>
    <versions><version>1</version><version>2</version><version>1</version><version/></versions>
    <lastUpdated>20240102030405</lastUpdated>
    <snapshot><timestamp>20240102.030405</timestamp><buildNumber>6</buildNumber><localCopy>true</localCopy></snapshot>
    <snapshotVersions><snapshotVersion><classifier>c</classifier><extension>jar</extension><value>v</value>
      <updated>20240102030405</updated></snapshotVersion></snapshotVersions>
    <extra xml:lang="de">1 &lt; 2</extra>
  </versioning>
  <plugins><plugin><name>N</name><prefix>p</prefix><artifactId>a</artifactId><more/></plugin>
    <plugin><name>without prefix</name></plugin></plugins>
  <t:tool xmlns:t="urn:tool" xsi:type="x"><inner><t:deep a='"'/></inner></t:tool>
</metadata>"""


def metadata(inside: str) -> bytes:
    return f"<metadata>{inside}</metadata>".encode()


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("UTF-8", b""),
        ("UTF-8", codecs.BOM_UTF8),
        ("UTF-16", b""),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("ISO-8859-1", b""),
    ],
)
def test_all_parts_are_read_in_any_encoding(encoding: str, mark: bytes):
    declared = "UTF-16" if encoding.startswith("utf-16") else encoding
    read = read_metadata(mark + WHOLE.format(encoding=declared).encode(encoding))
    assert read == ReadMetadata(
        group="com.example",
        artifact="k\u00e4se",
        version="1-SNAPSHOT",
        latest="2",
        release="1",
        versions=("1", "2"),
        last_updated="20240102030405",
        timestamp="20240102.030405",
        build_number="6",
        snapshots=(SnapshotFile("c", "jar", "v", "20240102030405"),),
        plugins=(Plugin("p", "a", "N"),),
        others=(
            Other("versioning", "extra", '<extra xml:lang="de">1 &lt; 2</extra>'),
            Other(
                "",
                "tool",
                '<tool xmlns="urn:tool" xmlns:n0="http://www.w3.org/2001/XMLSchema-instance" n0:type="x">'
                '<inner xmlns=""><deep xmlns="urn:tool" a=\'"\'></deep></inner></tool>',
            ),
        ),
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" ",
        b"\x00",
        b"text",
        b"{}",
        b"<metadata",
        b"<metadata><groupId></metadata>",
        b"<metadata/><metadata/>",
        b"<project/>",
        b'<?xml version="1.0" encoding="x-none"?><metadata/>',
        b'<?xml version="1.0" encoding="UTF-8"?><metadata>\xff</metadata>',
        b"\xff\xfe<\x00m\x00",
        b"<!DOCTYPE metadata><metadata/>",
        b'<!DOCTYPE m [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><metadata>&c;</metadata>',
        b'<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]><metadata>&x;</metadata>',
        b'<!DOCTYPE m SYSTEM "http://upstream.example/m.dtd"><metadata/>',
        metadata("&unknown;"),
        metadata(f"<groupId>{'x' * (TEXT_SIZE + 1)}</groupId>"),
        metadata("<a>" * 600 + "</a>" * 600),
        metadata("<plugins>" + "<plugin/>" * (MOST_ENTRIES + 1) + "</plugins>"),
    ],
)
def test_what_is_no_metadata_is_refused_with_a_sentence(content: bytes):
    with pytest.raises(Invalid, match="metadata"):
        read_metadata(content)


def filled(before: str, piece: str, after: str) -> bytes:
    """Metadata of the largest size, filled with a piece."""
    count = (LARGEST - len(before) - len(after) - 30) // len(piece)
    return metadata(before + piece * count + after)


def test_long_lists_of_versions_are_read():
    versions = [f"1.{number}" for number in range(MOST_ELEMENTS - 3)]
    listed = "".join(f"<version>{version}</version>" for version in versions)
    read = read_metadata(metadata(f"<versioning><versions>{listed}</versions></versioning>"))
    assert read.versions == tuple(versions)


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ("", "<a/>", ""),
        ("", "<a>", ""),
        ("", "<a b='c'/>", ""),
        ("<a>", "x", "</a>"),
        ("<a>", "&lt;", "</a>"),
        ("", "<versioning>", ""),
        ("<versioning>", "<a/>", "</versioning>"),
        ("<versioning><snapshotVersions>", "<snapshotVersion/>", "</snapshotVersions></versioning>"),
        ("<versioning><versions>", "<version>1</version>", "</versions></versioning>"),
        ("<versioning><versions>", "<a/>", "</versions></versioning>"),
        ("<groupId>", "x", "</groupId>"),
        ("<groupId>", "<a>", "</groupId>"),
        ("<a ", "b='' ", "/>"),
        ("<a xmlns='", "x", "'/>"),
    ],
)
def test_large_documents_are_refused_without_reading_them_to_the_end(before: str, piece: str, after: str):
    with pytest.raises((Invalid, TooLarge)):
        read_metadata(filled(before, piece, after))


def test_documents_beyond_the_limit_are_not_parsed():
    with pytest.raises(TooLarge):
        read_metadata(b" " * (LARGEST + 1))
    assert OTHERS_SIZE < LARGEST


def xml() -> st.SearchStrategy[str]:
    names = st.sampled_from(
        [
            "metadata",
            "versioning",
            "versions",
            "version",
            "plugins",
            "plugin",
            "prefix",
            "groupId",
            "snapshot",
            "x:y",
            "a",
        ]
    )
    text = st.sampled_from(["", "1.0", "&amp;", "<!-- c -->", "<![CDATA[<x>]]>", "\r\n", "\u00e9", "&#13;"])

    def element(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        attributes = st.sampled_from(["", ' a="b"', ' xmlns:x="urn:x"', ' xmlns="urn:y"', ' x:z="&lt;"'])
        return st.tuples(names, attributes, st.lists(children, max_size=4)).map(
            lambda each: f"<{each[0]}{each[1]}>{''.join(each[2])}</{each[0]}>"
        )

    return st.recursive(text, element, max_leaves=20)


@given(xml())
def test_any_document_is_read_or_refused(inside: str):
    try:
        read = read_metadata(metadata(inside))
    except Invalid:
        return
    again = read_metadata(metadata("".join(other.xml for other in read.others if not other.inside)))
    assert again.others == tuple(other for other in read.others if not other.inside)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(content: bytes):
    with pytest.raises(Invalid):
        read_metadata(content)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_tag_with_thousands_of_attributes_is_not_parsed(encoding: str):
    attributes = " ".join(f"a{number}='>\u3c3c'" for number in range(100_000))
    with pytest.raises(Invalid, match="128 KiB"):
        read_metadata(f"<metadata><a {attributes}/></metadata>".encode(encoding))

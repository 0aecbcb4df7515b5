"""POMs are read in any encoding, with bounded memory, and nothing in them is resolved."""

import tracemalloc

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.upload.pom import MOST_ENTRIES, POM_SIZE, TEXT_SIZE, Pom, read_pom

WHOLE = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <modelVersion>4.0.0</modelVersion>
  <parent><groupId>com.example</groupId><artifactId>parent</artifactId><version>7</version></parent>
  <artifactId>app</artifactId>
  <version>1.0</version>
  <packaging>maven-plugin</packaging>
  <name>An   app
     of ours</name>
  <description>What it <!-- really --> does</description>
  <url>https://app.example/</url>
  <organization><name>Example</name><url>https://org.example</url></organization>
  <licenses>
    <license><name>Apache-2.0</name><url>https://licence.example</url></license>
    <license><url>https://other.example</url></license>
  </licenses>
  <developers><developer><id>jd</id><name>J. Doe</name><email>jd@app.example</email></developer></developers>
  <scm><connection>scm:git:x</connection><url>https://git.example/app</url></scm>
  <issueManagement><url>javascript:alert(1)</url></issueManagement>
  <properties><version>not this</version><name>nor this</name></properties>
  <dependencies>
    <dependency><groupId>g</groupId><artifactId>a</artifactId><version>${revision}</version><scope>test</scope>
      <exclusions><exclusion><groupId>x</groupId><artifactId>y</artifactId></exclusion></exclusions></dependency>
    <dependency><groupId>g</groupId><artifactId>b</artifactId><type>pom</type><classifier>c</classifier>
      <version>2</version><optional>true</optional></dependency>
    <dependency><groupId>no artifact</groupId></dependency>
  </dependencies>
  <dependencyManagement><dependencies><dependency><groupId>m</groupId><artifactId>m</artifactId></dependency>
  </dependencies></dependencyManagement>
  <build><plugins><plugin><groupId>p</groupId><dependencies><dependency><groupId>q</groupId>
    <artifactId>q</artifactId></dependency></dependencies></plugin></plugins></build>
  <profiles><profile><dependencies><dependency><groupId>r</groupId><artifactId>r</artifactId></dependency>
  </dependencies></profile></profiles>
</project>
"""


def project(inner, encoding="UTF-8"):
    return f'<?xml version="1.0" encoding="{encoding}"?><project>{inner}</project>'.encode(encoding)


def test_a_pom_says_what_an_artifact_is():
    assert read_pom(WHOLE.encode()) == Pom(
        group="com.example",
        artifact="app",
        version="1.0",
        packaging="maven-plugin",
        name="An app of ours",
        description="What it does",
        url="https://app.example/",
        organization="Example",
        parent="com.example:parent:7",
        licenses=("Apache-2.0", "https://other.example"),
        developers=("J. Doe",),
        dependencies=("g:a:${revision} (test)", "g:b:pom:c:2 (optional)"),
        properties={"version": "not this", "name": "nor this"},
        links={"Source": "https://git.example/app"},
    )


@pytest.mark.parametrize(
    ("properties", "java"),
    [
        ({"maven.compiler.release": "17", "maven.compiler.target": "11"}, "17"),
        ({"maven.compiler.target": "1.8"}, "8"),
        ({"java.version": "21"}, "21"),
        ({"maven.compiler.release": "${java.version}", "java.version": " 11 "}, "11"),
        ({"maven.compiler.release": "${maven.compiler.release}"}, ""),
        ({"maven.compiler.target": "${revision}", "java.version": "<b>x</b>"}, ""),
        ({"maven.compiler.release": "latest"}, ""),
        ({}, ""),
    ],
)
def test_properties_say_which_java_is_needed(properties, java):
    inner = "".join(f"<{name}>{text}</{name}>" for name, text in properties.items())
    found = read_pom(project(f"<artifactId>a</artifactId><properties>{inner}</properties>"))
    assert found.java == java
    assert found.meta().get("requires_java", "") == java


def test_its_metadata_have_the_names_of_all_formats_and_nothing_empty():
    assert read_pom(WHOLE.encode()).meta() == {
        "name": "An app of ours",
        "description": "What it does",
        "license": "Apache-2.0, https://other.example",
        "home_page": "https://app.example/",
        "project_urls": ["Source, https://git.example/app"],
        "requires_dist": ["g:a:${revision} (test)", "g:b:pom:c:2 (optional)"],
        "packaging": "maven-plugin",
        "organization": "Example",
        "developers": ["J. Doe"],
        "parent": "com.example:parent:7",
    }
    assert read_pom(b"<project/>").meta() == {"packaging": "jar"}


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "windows-1252", "UTF-8", "UTF-16", "ISO-8859-15"])
def test_a_pom_says_its_encoding(encoding):
    assert read_pom(project("<name>Käse für Jürgen</name>", encoding)).name == "Käse für Jürgen"


@pytest.mark.parametrize("encoding", ["Shift_JIS", "EUC-JP", "gb18030"])
def test_encodings_of_several_bytes_are_read(encoding):
    assert read_pom(project("<name>日本</name>", encoding)).name == "日本"


def test_a_byte_order_mark_is_read():
    assert read_pom(b"\xef\xbb\xbf" + WHOLE.encode()).artifact == "app"


@pytest.mark.parametrize("encoding", [b"zlib", b"no-such-thing", b"utf-7", b"idna", b"rot13"])
def test_a_pom_in_an_unknown_encoding_is_not_read(encoding):
    assert read_pom(b'<?xml version="1.0" encoding="%s"?><project><name>x</name></project>' % encoding) is None


@pytest.mark.parametrize(
    "head",
    [
        "<!DOCTYPE project>",
        '<!DOCTYPE project [<!ENTITY a "b">]>',
        '<!DOCTYPE project SYSTEM "file:///etc/passwd">',
        '<!DOCTYPE project [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
    ],
)
def test_a_pom_with_a_doctype_is_not_read(head):
    assert read_pom(f"{head}<project><name>&a;</name></project>".encode()) is None


def test_a_pom_that_is_too_large_is_not_read():
    assert read_pom(b"<project>" + b" " * POM_SIZE + b"</project>") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"not xml", b"<project>", b"<project></other>", b"<project/><project/>", b"<html/>", b"PK\x03\x04", b"\0",
     b"<project>&nbsp;</project>", b'<?xml version="1.0" encoding="UTF-8"?><project>\xff</project>'],
)  # fmt: skip
def test_a_malformed_pom_is_refused(content):
    with pytest.raises(Invalid) as found:
        read_pom(content)
    assert len(str(found.value)) < 120


def test_elements_within_a_text_are_left_out():
    assert read_pom(project("<name>a<b>c<name>d</name></b>e</name><url>https://x.example</url>")).name == "ae"


def test_long_texts_and_lists_are_cut():
    found = read_pom(project(f"<description>{'x' * (TEXT_SIZE + 10)}</description>"))
    assert len(found.description) == TEXT_SIZE
    many = "".join(
        f"<dependency><groupId>g</groupId><artifactId>a{n}</artifactId></dependency>" for n in range(MOST_ENTRIES + 5)
    )
    assert len(read_pom(project(f"<dependencies>{many}</dependencies>")).dependencies) <= MOST_ENTRIES


def test_memory_is_bounded_by_what_is_shown():
    content = b"<project>" + b"<a/>" * 900_000 + b"</project>"
    tracemalloc.start()
    try:
        read_pom(content)
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_a_deep_pom_is_refused():
    assert read_pom(b"<project>" + b"<a>" * 400 + b"</a>" * 400 + b"</project>") is not None
    with pytest.raises(Invalid, match="within each other"):
        read_pom(b"<project>" + b"<a>" * 400_000 + b"</a>" * 400_000 + b"</project>")


@pytest.mark.parametrize(
    ("pom", "said"),
    [
        (Pom("g", "a", "1"), None),
        (Pom("", "a", ""), None),
        (Pom("g", "a", "${revision}"), None),
        (Pom("h", "a", "1"), "groupId"),
        (Pom("g", "b", "1"), "artifactId"),
        (Pom("g", "a", "2"), "version"),
    ],
)
def test_a_coordinate_that_differs_from_the_path_is_named(pom, said):
    found = pom.mismatch("g", "a", "1")
    assert found is None if said is None else said in found

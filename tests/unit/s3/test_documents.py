"""The documents of the S3 protocol, as several servers send them."""

from datetime import UTC, datetime

import pytest

from pkgrepo.s3 import documents
from pkgrepo.s3.documents import DocumentBroken, Page, Part, PartsUpload, StoredObject

NAMESPACE = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
AT = "2026-01-02T03:04:05.678Z"
TIME = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


@pytest.mark.parametrize("namespace", [NAMESPACE, ""], ids=["with-namespace", "without"])
def test_a_page_of_objects_is_read(namespace):
    data = (
        f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult{namespace}><IsTruncated>true</IsTruncated>'
        f"<Contents><Key>a/b</Key><LastModified>{AT}</LastModified><ETag>&quot;x&quot;</ETag><Size>0</Size></Contents>"
        f"<Contents><Key>a/c&amp;d</Key><LastModified>{AT}</LastModified><Size>7</Size></Contents></ListBucketResult>"
    )
    found = documents.read_objects(data.encode())
    assert found == Page([StoredObject("a/b", 0, TIME), StoredObject("a/c&d", 7, TIME)], ("a/c&d", ""))


def test_the_last_page_and_an_empty_one_name_no_next_page():
    one = f"<Upload><Key>k</Key><UploadId>u</UploadId><Initiated>{AT}</Initiated></Upload>"
    assert documents.read_uploads(f"<R>{one}</R>".encode()) == Page([PartsUpload("k", "u", TIME)], None)
    assert documents.read_uploads(b"<R><IsTruncated>true</IsTruncated></R>") == Page([], None)


def test_parts_have_the_digest_that_the_store_knows():
    part = f'<Part><PartNumber>3</PartNumber><ETag>"e"</ETag><Size>5</Size><LastModified>{AT}</LastModified>%s</Part>'
    data = f"<R>{part % '<ChecksumSHA256>abc=</ChecksumSHA256>'}{part % ''}</R>"
    assert documents.read_parts(data.encode()).items == [
        Part(3, '"e"', 5, "abc=", TIME),
        Part(3, '"e"', 5, None, TIME),
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<R>",
        b"<R><Contents><Key>k</Key></Contents></R>",
        b"<R><Contents><Key>k</Key><Size>-1</Size><LastModified>2026-01-02T03:04:05Z</LastModified></Contents></R>",
        b"<R><Contents><Key>k</Key><Size>1</Size><LastModified>yesterday</LastModified></Contents></R>",
        b'<!DOCTYPE r [<!ENTITY e "aaaaaaaaaa">]><R>&e;</R>',
    ],
)
def test_other_documents_are_refused(data):
    with pytest.raises(DocumentBroken):
        documents.read_objects(data)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (f"<Error{NAMESPACE}><Code>SlowDown</Code><Message>m</Message></Error>".encode(), "SlowDown"),
        (b"<CompleteMultipartUploadResult><Key>k</Key></CompleteMultipartUploadResult>", ""),
        (b"<html>", ""),
        (b"", ""),
    ],
)
def test_the_code_of_an_error_is_found(data, code):
    assert documents.read_error_code(data) == code


def test_the_document_of_parts_is_one_that_servers_read():
    document = documents.render_parts([Part(1, '"a&b"', 5, "x="), Part(2, '"c"', 6)])
    assert (
        document
        == (
            f"<CompleteMultipartUpload{NAMESPACE}>"
            '<Part><PartNumber>1</PartNumber><ETag>"a&amp;b"</ETag><ChecksumSHA256>x=</ChecksumSHA256></Part>'
            '<Part><PartNumber>2</PartNumber><ETag>"c"</ETag></Part></CompleteMultipartUpload>'
        ).encode()
    )

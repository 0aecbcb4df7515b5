"""
Limits of requests; those of a tarball's members are in ``pkgrepo.archives.source``.

With each limit the inspection of 1 MB of upload takes less than one second of processor time, and blocks the reactor
for less than 10 ms at a time. Bodies may be compressed, so that 1 MB on the wire may reach any of these limits.

=======================  ================================================  ===========================================
counted                  limit                                             cost of one
=======================  ================================================  ===========================================
bytes of a document      16 MiB beside its tarball                         10 ns
its nesting depth        64                                                a pass over its brackets
objects and arrays       4,096, or one for each 32 bytes; 250,000          0.3 us of the reactor's time
                         at most
values                   1,000,000                                         0.3 us in a thread
versions in one that     50,000                                            20 us in a thread
is written back
dist-tags                100 of a version that is published; 10,000 in a   10 us
                         document that is written back
package.json             8 MiB, 250,000 values                             0.3 us a value in a thread
integrity of a tarball   4,096 characters                                  1 us for each digest
a version, a range       256 characters                                    40 us
small documents          64 KiB, 5,000 values                              1 us a value of the reactor's time
an audit                 32 MiB, 1,000,000 values                          0.3 us a value in a thread
packages in its tree     100,000                                           5 us
versions compared with   100,000                                           4 us for each advisory and version
advisories
advisories in a response  5,000                                             50 us
paths in a response       50 of a version, of 4 MiB together                copied once
=======================  ================================================  ===========================================
"""

from __future__ import annotations

from typing import Final

from attrs import frozen


@frozen
class DocumentLimits:
    """Limits of a document that is published."""

    size: int = 16 * 1024 * 1024  # bytes beside the tarballs
    depth: int = 64
    brackets: int = 250_000  # a real document of the largest size has 160,000
    free_brackets: int = 4096  # allowed whatever the length of the document so far
    bracket_size: int = 32  # bytes of the document for each further bracket; real ones have 60 or more
    values: int = 1_000_000


@frozen
class AuditLimits:
    """Limits of an audit and of its response."""

    size: int = 32 * 1024 * 1024  # bytes of the request, uncompressed
    values: int = 1_000_000
    nodes: int = 100_000  # of a tree; a large workspace has 10,000
    compared: int = 100_000  # pairs of a version and an advisory
    advisories: int = 5000  # in one response
    paths: int = 50  # of one version in a response; people read no more
    paths_size: int = 4 * 1024 * 1024  # characters of all paths in a response


DOCUMENT: Final = DocumentLimits()
AUDIT: Final = AuditLimits()

MOST_VERSIONS: Final = 50_000  # of a document that is written back
PUBLISH_TAGS: Final = 100  # of a version that is published; clients send one
MOST_TAGS: Final = 10_000  # of a document that is written back
MOST_ATTACHMENTS: Final = 4
MOST_MEMBERS: Final = 1000  # of an object that contains the attachments, or is one
LONGEST_KEY: Final = 64 * 1024  # bytes of a key in such an object

MANIFEST_SIZE: Final = 8 * 1024 * 1024  # bytes of package.json; a long list of files or exports makes 100 KiB
MANIFEST_VALUES: Final = 250_000
LONGEST_INTEGRITY: Final = 4096  # characters
README_LENGTH: Final = 64 * 1024  # characters; the public registry's limit, which keeps packuments small

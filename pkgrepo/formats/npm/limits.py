"""
Budgets of what npm's clients send; those of a tarball's members are in ``pkgrepo.archives.limits``.

Each keeps the inspection of 1 MB of upload below one second of processor time, and below 10 ms of the reactor's at
once. Bodies may come compressed, so that 1 MB may say anything up to these limits.

=======================  ================================================  ===========================================
counted                  budget                                            what one costs
=======================  ================================================  ===========================================
bytes of a document      16 MiB beside its tarball                         10 ns
its depth                64                                                a pass over its brackets
objects and arrays       4,096, or one for each 32 bytes; 250,000         0.3 us of the reactor's time
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
versions held against    100,000                                           4 us for each advisory and version
advisories
advisories told          5,000                                             50 us
paths told               50 of a version, of 4 MiB together                copied once
=======================  ================================================  ===========================================
"""

from __future__ import annotations

from typing import Final

DOCUMENT_SIZE: Final = 16 * 1024 * 1024  # bytes beside the tarballs
MOST_DEPTH: Final = 64
MOST_BRACKETS: Final = 250_000  # a document of the largest size has 160,000 when it is honest
FREE_BRACKETS: Final = 4096  # however short the document is so far
BRACKET_SIZE: Final = 32  # bytes of the document for each bracket beyond; honest ones have 60 or more
MOST_VALUES: Final = 1_000_000
MOST_VERSIONS: Final = 50_000  # of a document that is written back
PUBLISH_TAGS: Final = 100  # of a version that is published; clients send one
MOST_TAGS: Final = 10_000  # of a document that is written back
MOST_ATTACHMENTS: Final = 4
MOST_MEMBERS: Final = 1000  # of an object on the way to an attachment
LONGEST_KEY: Final = 64 * 1024  # bytes of a key on the way to an attachment

MANIFEST_SIZE: Final = 8 * 1024 * 1024  # bytes of package.json; one with a long list of files or exports has 100 KiB
MANIFEST_VALUES: Final = 250_000
LONGEST_INTEGRITY: Final = 4096  # characters

AUDIT_SIZE: Final = 32 * 1024 * 1024  # bytes of an audit, uncompressed
AUDIT_VALUES: Final = 1_000_000
MOST_NODES: Final = 100_000  # of a tree; a large workspace has 10,000
MOST_COMPARED: Final = 100_000  # versions held against advisories, each advisory apart
MOST_TOLD: Final = 5000  # advisories in one answer
MOST_PATHS: Final = 50  # told of one version; more help nobody
PATHS_SIZE: Final = 4 * 1024 * 1024  # characters of all paths told

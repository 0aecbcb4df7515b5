"""
Budgets of what a distribution and its upload form say; those of its archive are in ``pkgrepo.archives.limits``.

Each keeps the inspection of 1 MB of upload below one second of processor time.

===================  ==========================================  =====================================================
counted              budget                                      what one costs
===================  ==========================================  =====================================================
bytes of METADATA    8 MiB                                       20 ns in the head, 2 ns in the body
or PKG-INFO
lines of its head    50,000                                      2 us
Requires-Dist        5,000 fields, of 512 KiB together           up to 1.5 us a character (brackets in a marker)
                     (one of more than 4,096, or of more
                     than 32 brackets, is not read)
RECORD               32 MiB, 400,000 rows                        6 ns a byte, 0.3 us a row
a version            255 characters                              10 us
attestations         16, of 512 KiB and 20,000 JSON values       0.1 us a value
===================  ==========================================  =====================================================
"""

from __future__ import annotations

from typing import Final

from pkgrepo.archives.limits import MOST_ENTRIES

METADATA_SIZE: Final = 8 * 1024 * 1024  # bytes of METADATA or PKG-INFO
RECORD_SIZE: Final = 32 * 1024 * 1024  # bytes of RECORD; some 300 for each of the most entries
RECORD_ROWS: Final = 4 * MOST_ENTRIES  # lines of it, and half its commas; an entry has one line and two commas

MOST_LINES: Final = 50_000  # of the head of METADATA or PKG-INFO
MOST_REQUIREMENTS: Final = 5_000
REQUIREMENTS_SIZE: Final = 512 * 1024  # characters of all requirements; the longest lists have some 100 KiB
LONGEST_REQUIREMENT: Final = 4096  # characters; longer ones are passed on unread
MOST_BRACKETS: Final = 32  # that open in one requirement, likewise; deep nesting takes 2.7 us a character

MOST_ATTESTATIONS: Final = 16  # for one file; tools make one or two
ATTESTATIONS_SIZE: Final = 512 * 1024  # bytes of all of them; 10 KiB each are usual
ATTESTATION_VALUES: Final = 20_000  # JSON values in all of them; some 100 each are usual

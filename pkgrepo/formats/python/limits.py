"""
Limits of metadata, upload forms and attestations; limits of archives are in ``pkgrepo.archives.source``.

They keep the inspection of a 1 MB upload below one second of CPU time.

===================  ==========================================  =====================================================
counted              limit                                       CPU time per unit
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

from pkgrepo.archives.source import LIMITS

METADATA_SIZE: Final = 8 * 1024 * 1024  # bytes of METADATA or PKG-INFO
RECORD_SIZE: Final = 32 * 1024 * 1024  # bytes of RECORD; about 300 for each of LIMITS.entries
RECORD_ROWS: Final = 4 * LIMITS.entries  # lines of RECORD, and half its commas: an entry has two

MOST_LINES: Final = 50_000  # in the head of METADATA or PKG-INFO
MOST_REQUIREMENTS: Final = 5_000
REQUIREMENTS_SIZE: Final = 512 * 1024  # characters of all requirements; the longest real lists have about 100 KiB
LONGEST_REQUIREMENT: Final = 4096  # characters; longer ones are stored without validation
MOST_BRACKETS: Final = 32  # opened in one requirement, likewise; deep nesting costs 2.7 us a character

MOST_ATTESTATIONS: Final = 16  # per file; tools make one or two
ATTESTATIONS_SIZE: Final = 512 * 1024  # bytes together; 10 KiB each is usual
ATTESTATION_VALUES: Final = 20_000  # JSON values together; about 100 each is usual

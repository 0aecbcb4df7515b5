"""
Limits of what clients send; the limits of archives are in ``pkgrepo.archives.source``.

They keep the inspection of a package below a few seconds of CPU time, whatever its size.
"""

from __future__ import annotations

from typing import Final

MIB: Final = 1024 * 1024

METADATA_SIZE: Final = 4 * 1024  # bytes of metadata.json in a .conda; 34 are usual
INFO_SIZE: Final = 32 * MIB  # bytes of the packed info member of a .conda; 100,000 files take 5 MB
BZ2_PACKED: Final = 8 * MIB  # bytes of a .tar.bz2 that are read until its info folder has come, at most 2 s
BZ2_UNPACKED: Final = 64 * MIB  # bytes of the same after decompression, at most 4 s
INDEX_SIZE: Final = 256 * 1024  # bytes of info/index.json; it is in the repodata, and usually has 500
ABOUT_SIZE: Final = MIB  # bytes of info/about.json
EXPORTS_SIZE: Final = 64 * 1024  # bytes of info/run_exports.json
MOST_VALUES: Final = 20_000  # of one of these JSON documents

REPODATA_SIZE: Final = 512 * MIB  # bytes of a document of an upstream channel, unpacked; the largest one has 300 MB
BZ2_DOCUMENT: Final = 64 * MIB  # bytes of a document up to which it is there as .bz2, which takes 100 ms per MB

LONGEST_NAME: Final = 128  # characters
LONGEST_VERSION: Final = 64  # CEP 26
LONGEST_BUILD: Final = 64  # CEP 26
LONGEST_FILE_NAME: Final = 220  # bytes with ending, so that a file system can hold names of sidecars
LONGEST_TEXT: Final = 64 * 1024  # characters of one text about a package, which is cut there

WHEEL_SIZE: Final = 64 * MIB  # bytes of a wheel that is converted, at most 1 s per 30 MB
WHEEL_UNPACKED: Final = 256 * MIB  # bytes of the same after decompression
CORE_METADATA_SIZE: Final = MIB  # bytes of METADATA in a wheel, with its description
RECORD_SIZE: Final = 16 * MIB  # bytes of RECORD in a wheel
ENTRY_POINTS_SIZE: Final = 64 * 1024  # bytes of entry_points.txt in a wheel
MOST_ENTRY_POINTS: Final = 1000
SCRIPT_SIZE: Final = MIB  # bytes of a script in a wheel
MOST_REQUIREMENTS: Final = 500
LONGEST_REQUIREMENT: Final = 2000  # characters

"""
Limits of what clients send; the limits of archives are in ``pkgrepo.archives.source``.

They keep the inspection of a 1 MB gem below one second of CPU time.

=====================  ==================================  ===========================================================
counted                limit                               CPU time per unit
=====================  ==================================  ===========================================================
bytes of the gemspec   10 MiB, as on the public registry   20 ns in libyaml
events of a document   200,000; a file list of 5,000       3 us
                       names has 5,100
directives             16                                  quadratic
nesting                64 collections in each other        -
dependencies           2,000                               5 us, also in each index document
requirements           100 of one dependency, 4,000 of a   1 us, also in each index document
                       gem, of up to 255 characters
versions               255 characters                      20 us for the order key
=====================  ==================================  ===========================================================
"""

from __future__ import annotations

from typing import Final

METADATA_SIZE: Final = 10 * 1024 * 1024  # bytes of metadata.gz, compressed or not
CHECKSUMS_SIZE: Final = 64 * 1024  # bytes of checksums.yaml.gz, compressed or not; 600 are usual
SIGNATURE_SIZE: Final = 64 * 1024  # bytes of one .sig; 512 are usual
MOST_MEMBERS: Final = 6  # three files, and a signature of each

MOST_EVENTS: Final = 200_000
MOST_DEPTH: Final = 64
MOST_DIRECTIVES: Final = 16
MOST_DEPENDENCIES: Final = 2_000
MOST_REQUIREMENTS: Final = 100
MOST_BOUNDS: Final = 4_000  # requirements of all dependencies together; aliases can name one many times

LONGEST_NAME: Final = 255  # characters
LONGEST_VERSION: Final = 255
LONGEST_PLATFORM: Final = 100
LONGEST_FILE_NAME: Final = 240  # bytes of <full name>.gemspec.rz, so that every file system can hold a sidecar's name
LONGEST_LINE: Final = 1_000  # characters of an author, licence or address; longer ones are refused
LONGEST_TEXT: Final = 512 * 1024  # characters of summary and description each
LONGEST_BINARY: Final = 1024 * 1024  # characters of a value in base64, which is decoded in one step of 20 ms
MOST_LINES: Final = 1_000  # authors, licences, addresses and metadata entries, each
FORM_SIZE: Final = 64 * 1024  # bytes of the form of a yank or an owner

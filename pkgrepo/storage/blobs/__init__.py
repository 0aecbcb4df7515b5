"""Immutable bytes as files, behind ``IBlobStore``. An upload passes in slices through a disk thread into a file."""

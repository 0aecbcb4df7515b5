"""
Readers of uploaded archives. They write nothing to disk, and refuse archives that are ambiguous or too large.

Read ``source`` first, then ``streams`` and ``tar_archive``, or ``zip_archive``. Which files an archive must contain is
checked by the package formats.
"""

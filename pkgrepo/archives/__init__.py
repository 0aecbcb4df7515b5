"""
Readers of uploaded archives that unpack nothing to disk, and refuse what is ambiguous or too large.

Read ``source`` and ``limits`` first, then ``gunzip`` and ``tar_archive``, or ``zip_archive``. The formats check what an
archive must contain.
"""

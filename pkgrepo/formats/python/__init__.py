"""
The Python format: the simple index, uploads, core metadata.

Read ``names`` first, then ``upload`` (distributions in), ``index`` (documents out), ``proxied``, and ``routes`` last.
"""

"""
The Python format: the simple index, uploads, core metadata.

Read ``names`` first, then ``archive`` (what an uploaded file must be), ``metadata``, ``pages``, and ``routes`` last.
"""

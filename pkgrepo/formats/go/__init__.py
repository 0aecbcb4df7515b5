"""
The Go format: the module proxy protocol, uploads of module zips, and a checksum database passed through.

Read ``names`` first, then ``archive`` (module zips in), ``index`` (lists out), ``proxied``, and ``routes`` last.
"""

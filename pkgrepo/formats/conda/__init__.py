"""
The conda format: packages as ``.conda`` and ``.tar.bz2``, and the documents of a channel.

Read ``names`` first, then ``package_metadata`` (what a package says of itself), ``upload`` (packages in), ``index``
(documents out), and ``routes`` last.
"""

"""
The Maven format: artifacts, metadata and bundles in the Maven 2 layout.

Read ``names`` and ``paths`` first, then ``upload`` (files in), ``metadata`` (documents out), and ``routes`` last.
"""

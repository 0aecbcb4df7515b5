"""
The Ruby gem format: pushes, the compact index, the legacy index, the JSON API.

Read ``names`` first, then ``gemspec`` (the specification of a gem), ``push`` (gems in), ``index``, ``legacy`` and
``api`` (documents out), and ``routes`` last.
"""

"""
The Ruby gem format: pushes, the compact index, the legacy index, the JSON API.

Read ``names`` first, then ``gemspec`` (what a gem says of itself), ``push`` (gems in), ``index``, ``legacy`` and
``api`` (documents out), and ``routes`` last.
"""

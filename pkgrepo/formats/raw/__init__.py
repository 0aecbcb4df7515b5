"""
The raw format: files at the paths that clients choose, and folders.

Read ``paths`` first (what a path is, and which package a file belongs to), then ``files``, ``folders`` and ``routes``.
"""

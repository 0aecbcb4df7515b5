"""
Folders of repositories whose clients see a tree of files: pages of entries, and archives of all that is below.

A request goes to ``requests``, which finds out what is shown of which members. It reads a level, a page at a time, with
``levels``, and answers with ``pages`` or ``archives``. A format says what its paths mean: L{levels.FolderFormat}.
"""

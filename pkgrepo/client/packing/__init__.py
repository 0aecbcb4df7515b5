"""
Folders that are uploaded: a file is made of each, as the tools that know such folders make it.

The server says by which file it knows a folder, and which of ``PACKINGS`` makes a file of it (``folders``).
"""

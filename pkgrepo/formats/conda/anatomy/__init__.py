"""
What is in a package's file: the ``info`` folder is read from the two kinds of archives, and nothing else.

Nothing is unpacked. ``reading`` is the entrance; its function blocks, and is called in a thread.
"""

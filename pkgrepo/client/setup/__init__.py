"""
``pkgrepo setup``: what the clients on this machine need to use a repository is printed, written, undone and checked.

``tools`` has the tools with their files, ``planning`` computes what would change, ``state`` keeps what was changed, and
``check`` runs the tools.
"""

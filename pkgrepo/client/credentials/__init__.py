"""
Credentials for other programs, of the profiles of ``pkgrepo login``.

``lending`` gives tokens that end within hours; ``docker``, ``cargo`` and ``keyring_backend`` hand them to programs by
the protocols of these. Nothing of it starts a reactor in the process of another program: ``renewal`` is one of its own.
"""

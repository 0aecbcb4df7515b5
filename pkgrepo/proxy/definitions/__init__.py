"""
Storing and showing the configurations of repositories: credentials are sealed and masked, members are checked.

The configurations themselves are parsed by ``pkgrepo.proxy.schema``, and read by ``pkgrepo.proxy.configuration``.
"""

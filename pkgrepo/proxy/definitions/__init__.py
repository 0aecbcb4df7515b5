"""
What people write in the configurations of proxy and virtual repositories, how it is checked, stored and shown.

A configuration is parsed (``shapes``), its credentials are sealed (``credentials``), its members are checked
(``members``), and the result is stored. The engine reads stored ones as the values of ``pkgrepo.proxy.configuration``.
"""

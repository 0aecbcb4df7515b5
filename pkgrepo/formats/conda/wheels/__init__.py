"""
Wheels as conda packages: a wheel's bytes in, and out those of a ``noarch: python`` package, or why there are none.
"""

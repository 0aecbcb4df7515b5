"""
Published incidents in the supply of packages, as data: names, versions, times, what changed, and where that is told.

There is no malicious code in it. A format makes harmless packages of the same shape (L{Drilled}).
"""

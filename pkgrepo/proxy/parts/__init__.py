"""
Upstream metadata documents, normalised into *parts files*.

A document of a package (packument, simple page) is normalised once per upstream change, outside of the reactor's
thread. Its entries are kept in the form in which the catalog has those of hosted packages, so that both are joined into
documents by the same code.
"""

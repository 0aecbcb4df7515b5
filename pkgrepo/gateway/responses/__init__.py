"""
Responses to reads: stored files, documents spliced from fragments, and long bodies made piece by piece.

``cache`` keeps rendered responses, with the query that tells whether each is still valid.
"""

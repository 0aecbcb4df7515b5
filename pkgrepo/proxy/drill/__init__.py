"""
Drills: published incidents, played in their own order of time through the decision that serving asks.

``player`` makes what a proxy would know at each moment, and asks the judge; ``drills`` is the job that plays them with
the rules of a repository or of the server; ``suggested`` are rules to begin with.
"""

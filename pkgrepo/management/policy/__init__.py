"""
What may be served: rules and blocks (``rules``), ``quarantine``, known vulnerabilities (``advisories``, ``osv``).

``rehearsal`` tries rules before they are saved, ``drills`` plays published incidents with them; ``recall`` says who
fetched a version that should not have been served.
"""

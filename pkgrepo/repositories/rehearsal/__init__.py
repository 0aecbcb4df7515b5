"""Rehearsals: ``work`` reads what is stored and was fetched, ``trial`` asks the rules, and ``found`` counts."""

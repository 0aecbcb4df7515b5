"""Commands on what is served: rules and blocks, known vulnerabilities, rehearsal and recall."""

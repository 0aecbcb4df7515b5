"""
What bin/release builds: wheel and sdist, Debian package, container image, Helm chart, documents about all of them.

``release`` calls the other modules in order and writes SHA256SUMS. Everything is made of the commit that is checked
out: ``sources`` stages it. ``tree`` is the program with its dependencies as the package and the image have it, of the
versions in requirements.txt, which ``dependency_audit`` compares with known vulnerabilities. ``archives`` writes tar
files that are the same for the same content.
"""

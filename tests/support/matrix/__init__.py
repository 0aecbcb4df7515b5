"""
The matrix of rules and roads: what rules decide, on every road by which something of a repository goes out or comes in.

``specimens`` has one package of each format whose two versions differ in every fact that rules ask for, with the roads
by which clients read them. ``kinds`` are the kinds of rules, with what each refuses of a specimen. ``incoming`` are the
roads by which something becomes visible.
"""

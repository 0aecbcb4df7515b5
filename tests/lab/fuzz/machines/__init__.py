"""
State machines: changes of the stores in any order, each compared with a small model.

Those about documents, proxies and quotas are beside the tests of these; ``run`` gives any of them minutes.
"""

"""
What publishing needs before and after a format's own rules: forms, stages, virtual repositories, quotas, publishers.

``pipelines`` exchanges the identity tokens with which a pipeline publishes without a stored token.
"""

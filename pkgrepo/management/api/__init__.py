"""The parts that all resources share: route table, dispatch with permission checks, pages, problems, OpenAPI."""

"""The OpenAPI document of the route tables, as JSON and as a page for people."""

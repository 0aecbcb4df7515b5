"""Who sends a request, and what the caller may do: authorization, push rules, the ping that asks for credentials."""

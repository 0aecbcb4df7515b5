"""Credentials in the forms that clients send, checked: Authorization header -> credentials -> checker -> identity."""

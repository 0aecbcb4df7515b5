"""Answers searches for artifacts, and questions about versions as other programs and badges ask them."""

"""
What comes from outside: text and JSON that are read strictly and within limits, and quoted in messages without control
characters; and the networks of clients, for which they are counted.
"""

"""Who is asking: API tokens, passwords, sessions, an identity provider, and what slows down whoever guesses.

Everything here answers with an `Identity` or None. Why it is None is nobody's business but the log's.
"""

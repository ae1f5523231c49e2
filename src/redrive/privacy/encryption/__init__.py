"""Encryption at rest: data keys seal values, and a key that is kept elsewhere wraps the data keys."""

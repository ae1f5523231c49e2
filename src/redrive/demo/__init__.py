"""A small shop whose messages fail in instructive ways: `redrive demo`, and an app to try commands on."""

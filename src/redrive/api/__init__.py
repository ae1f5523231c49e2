"""The HTTP API: one file for each noun. It knows the desk, never a store or a broker."""

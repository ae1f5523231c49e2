"""The desk through a server: the same questions, asked over HTTP, with the same answers and the same errors."""

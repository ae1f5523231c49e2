"""Telling people: what an alert is, how it reads, and the channels it goes out by."""

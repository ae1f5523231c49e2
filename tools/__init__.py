"""What is made for the repository itself, and not installed."""

"""What Redrive tells about itself. Payloads are in none of it."""

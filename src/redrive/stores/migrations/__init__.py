"""What Alembic runs: `env` once, then each file of `versions` that the database has not seen yet."""

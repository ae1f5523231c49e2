"""What must not be seen by everybody: found, masked, found again by a keyed hash, encrypted."""

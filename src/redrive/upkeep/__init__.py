"""What keeps work safe and tidy beside the messages themselves: the spool, the journal, what expires."""

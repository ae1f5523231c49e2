"""What the bare loops on Kafka have in common, without either client: neither is to load the other one."""

COMMIT_EVERY = 0.1
AT_ONCE = 500

"""Consumers and publishers that take turns in `bench/rabbitmq` and `bench/kafka`, each in a process of its own."""

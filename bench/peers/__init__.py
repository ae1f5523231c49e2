"""Consumers and publishers that take turns in `bench/rabbitmq`, each in a process of its own."""

"""The driver for RabbitMQ (AMQP 0-9-1)."""

"""The driver for Apache Kafka, on librdkafka."""

"""The driver for Amazon SQS, on aiobotocore."""

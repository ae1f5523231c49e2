"""Who the tests are to whatever plays SQS, and where: nobody checks."""

from __future__ import annotations

REGION = "eu-west-1"
URL = f"sqs://{REGION}"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}

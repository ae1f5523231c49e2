"""SQS as other programs use it: botocore's own client, and nothing of the product's."""

from __future__ import annotations

import json
from typing import Any

from botocore.session import get_session

from support.sqs_account import CREDENTIALS, REGION

_AT_ONCE = 10


class PlainSqs:
    def __init__(self, endpoint: str) -> None:
        self._client: Any = get_session().create_client(
            "sqs",
            region_name=REGION,
            endpoint_url=endpoint,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )

    def make(self, name: str, **attributes: str) -> str:
        """Its ARN."""
        self._client.create_queue(QueueName=name, Attributes=attributes)
        return self.told(name)["QueueArn"]

    def make_family(self, name: str, dead: str) -> None:
        """A queue, and where SQS moves what was received once and not deleted."""
        rule = {"deadLetterTargetArn": self.make(dead), "maxReceiveCount": "1"}
        self.make(name, RedrivePolicy=json.dumps(rule))

    def told(self, name: str) -> dict[str, str]:
        answer = self._client.get_queue_attributes(QueueUrl=self.url(name), AttributeNames=["All"])
        attributes: dict[str, str] = answer["Attributes"]
        return attributes

    def url(self, name: str) -> str:
        return str(self._client.get_queue_url(QueueName=name)["QueueUrl"])

    def visible(self, name: str) -> int:
        return int(self.told(name)["ApproximateNumberOfMessages"])

    def hidden(self, name: str) -> int:
        """What somebody has in hand, and what waits."""
        told = self.told(name)
        return sum(int(told[f"ApproximateNumberOfMessages{which}"]) for which in ("NotVisible", "Delayed"))

    def names(self, beginning: str) -> list[str]:
        """Of the queues that are there."""
        urls: list[str] = self._client.list_queues(QueueNamePrefix=beginning).get("QueueUrls", [])
        return [url.rpartition("/")[2] for url in urls]

    def send(self, name: str, *bodies: str, **attributes: str) -> None:
        told = {key: {"DataType": "String", "StringValue": value} for key, value in attributes.items()}
        url = self.url(name)
        for at in range(0, len(bodies), _AT_ONCE):
            entries = [
                {"Id": str(number), "MessageBody": body, "MessageAttributes": told}
                for number, body in enumerate(bodies[at : at + _AT_ONCE])
            ]
            assert not self._client.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")

    def fail_all(self, name: str) -> None:
        """A consumer that receives everything and deletes nothing, until SQS has moved it all away."""
        url = self.url(name)
        while self.visible(name):
            self._received(url, visibility=0)

    def take(self, name: str) -> list[str]:
        """The bodies of all that is visible, which is gone then."""
        url, bodies = self.url(name), []
        while found := self._received(url, visibility=60):
            for each in found:
                self._client.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
                bodies.append(str(each["Body"]))
        return bodies

    def look_into(self, name: str) -> list[str]:
        """The bodies of all that is visible, and is so again then."""
        url, seen = self.url(name), []
        while found := self._received(url, visibility=60):
            seen += found
        for each in seen:
            self._client.change_message_visibility(
                QueueUrl=url, ReceiptHandle=each["ReceiptHandle"], VisibilityTimeout=0
            )
        return [str(each["Body"]) for each in seen]

    def _received(self, url: str, *, visibility: int) -> list[dict[str, Any]]:
        answer = self._client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=_AT_ONCE, VisibilityTimeout=visibility, WaitTimeSeconds=0
        )
        found: list[dict[str, Any]] = answer.get("Messages", [])
        return found

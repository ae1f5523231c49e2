"""What SQS and those who give credentials say, in our words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    SSOTokenLoadError,
    UnauthorizedSSOTokenError,
)

from redrive.errors import Unreachable
from redrive.transports.sqs.address import Address
from redrive.transports.sqs.client import SqsClient
from redrive.transports.sqs.refusals import SqsRefusal, answered, of_entry, unusable, without_credentials


def said(code: str, status: int) -> Any:
    answer = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return answered(ClientError(answer, "ReceiveMessage"))


@pytest.mark.parametrize(
    ("code", "what", "remedy"),
    [
        ("OverLimit", "in flight", "delete or give back"),
        ("RequestThrottled", "no more requests", "quota"),
        ("com.amazonaws.sqs#ThrottlingException", "no more requests", "quota"),
        ("KmsThrottled", "KMS", "KmsDataKeyReusePeriodSeconds"),
        ("KmsInvalidState", "key", "enable it"),
        ("InvalidSecurity", "https", "broker.sqs.endpoint"),
        ("QueueDeletedRecently", "deleted less than a minute ago", "wait"),
        ("ExpiredTokenException", "have run out", "aws sso login"),
        ("InvalidSignatureException", "signature", "clock"),
        ("InvalidClientTokenId", "does not know us", "credentials"),
        ("AccessDenied", "does not let us", "docs/sqs.md"),
        ("WhoKnows", "SQS refuses", "API reference"),
    ],
)
def test_what_was_answered_is_never_told_as_silence(code: str, what: str, remedy: str) -> None:
    refusal = said(code, 400)
    assert isinstance(refusal, SqsRefusal)
    told = unusable(refusal)
    assert what in str(told)
    assert remedy in told.remedy
    assert "does not answer" not in str(told)


def test_an_error_of_sqs_itself_is_told_as_its_own() -> None:
    for told in (said("InternalError", 500), of_entry({"Code": "InternalError", "SenderFault": False})):
        assert isinstance(told, Unreachable)
        assert "trouble of its own" in str(told)
    assert isinstance(said("RequestThrottled", 503), SqsRefusal)


@pytest.mark.parametrize(
    ("raised", "remedy"),
    [
        (SSOTokenLoadError(error_msg="hunter2"), "aws sso login"),
        (UnauthorizedSSOTokenError(), "aws sso login"),
        (CredentialRetrievalError(provider="custom-process", error_msg="hunter2"), "credential_process"),
        (NoCredentialsError(), "AWS_ACCESS_KEY_ID"),
    ],
)
def test_who_has_no_credentials_is_told_how_to_get_them(raised: Exception, remedy: str) -> None:
    told = without_credentials(raised)
    assert remedy in told.remedy
    assert "hunter2" not in str(told)


@pytest.mark.parametrize("command", ["false", "/nowhere/is/this"])
async def test_a_program_for_credentials_that_fails_may_work_later(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(f"[profile shop]\ncredential_process = {command}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "shop")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    client = SqsClient(Address("eu-west-1"), endpoint="http://127.0.0.1:1", connect_timeout=1, patience=1)

    with pytest.raises(Unreachable, match="could not be fetched"):
        await client.call("list_queues")
    await client.close()

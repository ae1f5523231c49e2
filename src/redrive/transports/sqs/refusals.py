"""What SQS says when it says no, in our words: what happened, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from botocore.exceptions import (
    CredentialRetrievalError,
    LoginError,
    MetadataRetrievalError,
    NoAuthTokenError,
    NoCredentialsError,
    PartialCredentialsError,
    SSOError,
    TokenRetrievalError,
)

from redrive.errors import PublishRefused, Unreachable

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

    from redrive.errors import RedriveError

_MISSING = frozenset({"NonExistentQueue", "QueueDoesNotExist"})
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "KmsAccessDenied", "AuthorizationError"})
_REFUSED = frozenset(
    {
        "InvalidAttributeValue",
        "InvalidMessageContents",
        "InvalidParameterValue",
        "KmsDisabled",
        "KmsNotFound",
        "MessageTooLong",
        "BatchRequestTooLong",
        "UnsupportedOperation",
    }
)
_LOST = frozenset({"InvalidIdFormat", "MessageNotInflight", "ReceiptHandleIsInvalid"})
_SERVERS_FAULT = 500


class _Said(NamedTuple):
    what: str
    remedy: str


_DENIAL = _Said("SQS does not let us", "allow what docs/sqs.md lists")
_STRANGER = _Said("AWS does not know us", "renew the credentials")
_WRONG_TIME = _Said("AWS does not believe our signature", "correct the secret key, or this machine's clock")
_EXPIRED = _Said("our credentials for AWS have run out", "renew them: aws sso login, a new session, or a role")
_TOO_FAST = _Said(
    "SQS takes no more requests for now", "lower concurrency or redrive_rate, or ask AWS for a higher quota"
)
_BAD_KEY = _Said(
    "the key that the queue is encrypted with cannot be used now",
    "enable it in KMS, or give the queue another one",
)
_WORDS = {
    **dict.fromkeys(_DENIED, _DENIAL),
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"), _EXPIRED),
    **dict.fromkeys(
        (
            "InvalidAccessKeyId",
            "InvalidClientTokenId",
            "MissingAuthenticationToken",
            "MissingAuthenticationTokenException",
            "OptInRequired",
            "UnrecognizedClientException",
        ),
        _STRANGER,
    ),
    **dict.fromkeys(
        (
            "IncompleteSignature",
            "IncompleteSignatureException",
            "InvalidSignatureException",
            "RequestExpired",
            "RequestTimeTooSkewed",
            "SignatureDoesNotMatch",
        ),
        _WRONG_TIME,
    ),
    **dict.fromkeys(
        (
            "RequestThrottled",
            "Throttling",
            "ThrottlingException",
            "RequestLimitExceeded",
            "TooManyRequestsException",
        ),
        _TOO_FAST,
    ),
    **dict.fromkeys(
        ("KmsDisabled", "KmsInvalidKeyUsage", "KmsInvalidState", "KmsNotFound", "KmsOptInRequired"), _BAD_KEY
    ),
    "KmsThrottled": _Said(
        "KMS takes no more requests for now", "raise the queue's KmsDataKeyReusePeriodSeconds, or the quota of KMS"
    ),
    "OverLimit": _Said(
        "so many messages of the queue are in flight that SQS gives no more",
        "120,000 may be: let consumers delete or give back what they hold",
    ),
    "InvalidSecurity": _Said(
        "SQS wants to be asked over https", "name an https:// address in broker.sqs.endpoint"
    ),
    "QueueDeletedRecently": _Said(
        "a queue of that name was deleted less than a minute ago", "wait for a minute: SQS makes none until then"
    ),
}


class SqsRefusal(Exception):
    """SQS answered, and said no. `code` without what some versions of its protocol put before it."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(f"{said} ({code})" if said else code)
        self.code = code.replace("#", ".").rpartition(".")[2]

    @property
    def is_missing(self) -> bool:
        return self.code in _MISSING

    @property
    def is_of_receipt(self) -> bool:
        """The message is no longer held by whoever has that receipt, or is gone."""
        return self.code in _LOST or (self.code == "InvalidParameterValue" and "eceipt" in str(self))


def away(said: object) -> Unreachable:
    return Unreachable(
        f"SQS does not answer: {said}",
        remedy="see that the region in broker.url, or broker.sqs.endpoint, can be reached; work goes on by itself",
    )


def failed_there(said: object) -> Unreachable:
    """It answered that it could not, and whose fault that is."""
    return Unreachable(
        f"SQS has trouble of its own: {said}",
        remedy="see AWS's health page if it lasts; work goes on by itself",
    )


def answered(raised: ClientError) -> SqsRefusal | Unreachable:
    error = raised.response.get("Error", {})
    refusal = SqsRefusal(str(error.get("Code", "")), str(error.get("Message", "")))
    status = raised.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status >= _SERVERS_FAULT and refusal.code not in _WORDS:
        return failed_there(f"HTTP {status}")
    return refusal


def of_entry(told: dict[str, Any]) -> SqsRefusal | Unreachable:
    """Why an entry of a batch failed."""
    if told.get("SenderFault", True):
        return SqsRefusal(str(told.get("Code", "")), str(told.get("Message", "")))
    return failed_there(told.get("Code", "an entry of a batch failed"))


def not_sent(refusal: SqsRefusal, queue: str) -> RedriveError:
    """Why a message is not where it should be."""
    if refusal.code in _DENIED:
        return PublishRefused(
            f"SQS does not let us send to queue {queue!r}: {refusal}",
            permanent=True,
            remedy="allow sqs:SendMessage for it, and kms:GenerateDataKey if it is encrypted with your own key",
        )
    if refusal.is_missing:
        return PublishRefused(f"there is no queue {queue!r}", permanent=True, remedy="make it: redrive setup")
    if refusal.code in _REFUSED:
        return PublishRefused(
            f"SQS refused a message for queue {queue!r}: {refusal.code}",
            permanent=True,
            remedy="change what it refuses: see the code in the API reference of SQS",
        )
    return unusable(refusal)


def not_set(refusal: SqsRefusal, queue: str) -> RedriveError:
    """Why an attribute of a queue is not as it should be."""
    if refusal.code in _DENIED | _REFUSED or refusal.is_missing:
        return PublishRefused(
            f"SQS does not change queue {queue!r}: {refusal}",
            permanent=True,
            remedy="allow sqs:SetQueueAttributes for it, which the queues of another account never do",
        )
    return unusable(refusal)


def unusable(refusal: SqsRefusal) -> Unreachable:
    """Why nothing can be done now that is no message's fault."""
    said = _WORDS.get(refusal.code)
    if said is None:
        said = _Said("SQS refuses", "see the code in the API reference of SQS")
    return Unreachable(f"{said.what}: {refusal}", remedy=f"{said.remedy}; work goes on by itself")


NO_CREDENTIALS = (
    CredentialRetrievalError,
    LoginError,
    MetadataRetrievalError,
    NoAuthTokenError,
    NoCredentialsError,
    PartialCredentialsError,
    SSOError,
    TokenRetrievalError,
)
"""Whoever was to give credentials did not. That may pass, so it is no error of the settings."""


def without_credentials(raised: Exception) -> Unreachable:
    """What the other side said is not quoted: it may be the output of a program that handles secrets."""
    kind = type(raised).__name__
    if isinstance(raised, LoginError | NoAuthTokenError | SSOError | TokenRetrievalError):
        return Unreachable(
            f"nobody is logged in to AWS, or the login has run out: {kind}",
            remedy="aws sso login, with the profile of AWS_PROFILE if any; work goes on by itself",
        )
    if isinstance(raised, CredentialRetrievalError | MetadataRetrievalError | OSError):
        return Unreachable(
            f"the credentials for AWS could not be fetched: {kind}",
            remedy="run the profile's credential_process by hand, or see that the role's service answers; "
            "work goes on by itself",
        )
    return Unreachable(
        "there are no credentials for AWS",
        remedy="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give this machine a role",
    )

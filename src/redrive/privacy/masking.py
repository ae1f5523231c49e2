"""What is shown to those who may not see everything: the same, with what is personal or secret taken out.

What comes out is for looking at: it is no message to be sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from redrive import kafka_origin, sqs_origin
from redrive.message import Envelope, ErrorNote, Message, Overlay
from redrive.privacy.field_names import FieldNames
from redrive.privacy.header_masks import HeaderMasks
from redrive.privacy.json_masks import is_json
from redrive.privacy.rules import MaskingRules, PlaceRules
from redrive.privacy.texts import Texts, can_be_looked_through

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter, FailureGroup, Happening, Revision
    from redrive.failure import Failure, Frame, Raised
    from redrive.message import Headers
    from redrive.privacy.masks import Mask
    from redrive.privacy.rules import Places

_replace = msgspec.structs.replace


class Masker:
    """Of one queue."""

    def __init__(self, rules: MaskingRules | None = None) -> None:
        rules = rules or MaskingRules()
        names = FieldNames(rules.fields)
        self.enabled = rules.enabled
        self._places = PlaceRules(rules)
        self._texts = Texts(names, hides=bool(rules.hidden))
        self._headers = HeaderMasks(names, self._texts)

    def payload(self, payload: bytes | None) -> bytes | None:
        """JSON or text with its masks, or what stands in the place of bytes that are neither."""
        if payload is None or not self.enabled:
            return payload
        return self._texts.body(payload, self._places.of_payload)

    def text(self, text: str) -> str:
        """An error's text, a title, a reason."""
        return self._texts.text(text) if self.enabled else text

    def header(self, name: str, value: Any) -> Any:
        """Of any type. True, false and nothing are shown whatever their name is."""
        return self._headers.shown(name, value) if self.enabled else value

    def message(self, message: Message) -> Message:
        """Id, queue, source, time and the place in Kafka stay. Other properties of the broker, which hold the
        headers once more, go.
        """
        if not self.enabled:
            return message
        return _replace(
            message,
            body=self._body(message),
            headers=self._masked_headers(message.headers),
            key=None if message.key is None else self._texts.body(message.key),
            overlay=self._overlay(message.overlay),
            properties=_properties(message),
        )

    def failure(self, failure: Failure) -> Failure:
        """Texts of errors and lines of code; types, files and functions stay."""
        if not self.enabled:
            return failure
        chain = tuple(self._raised(each) for each in failure.chain)
        return failure if chain == failure.chain else _replace(failure, chain=chain)

    def letter(self, letter: DeadLetter) -> DeadLetter:
        """Ids, queue, handler, types, times and the names of those who did something stay."""
        if not self.enabled:
            return letter
        return _replace(
            letter,
            message=self.message(letter.message),
            text=self.text(letter.text),
            how=self._optional(letter.how),
            lane=self._optional(letter.lane),
            failures=tuple(map(self.failure, letter.failures)),
            revisions=tuple(map(self._revision, letter.revisions)),
            history=tuple(map(self._happening, letter.history)),
        )

    def group(self, group: FailureGroup) -> FailureGroup:
        """What people wrote is masked too: they paste."""
        if not self.enabled:
            return group
        return _replace(
            group,
            title=self.text(group.title),
            note=self._optional(group.note),
            runbook=self._optional(group.runbook),
            history=tuple(map(self._happening, group.history)),
        )

    def masks(self, message: Message) -> list[Mask]:
        """What is masked in body, headers and key, each with what stood there; of what is hidden as a whole
        because it is too long or no text, nothing.
        """
        found = [] if message.body is None else self._texts.masks(message.body, self._places_of(message))
        for name, value in message.headers:
            found += self._headers.masks(name, value)
        return found if message.key is None else found + self._texts.masks(message.key)

    def _body(self, message: Message) -> bytes | None:
        body = message.body
        if body is None:
            return None
        if message.envelope is not None and not can_be_looked_through(body):
            return self._by_parts(message.envelope)
        return self._texts.body(body, self._places_of(message))

    def _places_of(self, message: Message) -> Places:
        return self._places.of_payload if message.envelope is None else self._places.of_envelope

    def _by_parts(self, envelope: Envelope) -> bytes:
        """Our own envelope, with a mark for what of it is too long or no text."""
        shown = _replace(
            envelope,
            data=self._part(envelope.data, self._places.of_payload),
            metadata=self._part(envelope.metadata, self._places.of_metadata),
            source=self.text(envelope.source),
            error=self._note(envelope.error),
        )
        return msgspec.json.encode(shown)

    def _part(self, part: msgspec.Raw, places: Places) -> msgspec.Raw:
        shown = self._texts.body(bytes(part), places)
        return msgspec.Raw(shown if is_json(shown) else msgspec.json.encode(shown.decode()))

    def _masked_headers(self, headers: Headers) -> Headers:
        return tuple((self.text(name), self._headers.shown(name, value)) for name, value in headers)

    def _overlay(self, overlay: Overlay | None) -> Overlay | None:
        return None if overlay is None else Overlay(self._note(overlay.error), overlay.retry_count)

    def _note(self, note: ErrorNote | None) -> ErrorNote | None:
        return None if note is None else ErrorNote(self.text(note.message), note.code, self.text(note.trace))

    def _raised(self, raised: Raised) -> Raised:
        text = self.text(raised.text)
        frames = tuple(map(self._frame, raised.frames))
        return _replace(raised, text=text, frames=frames)

    def _frame(self, frame: Frame) -> Frame:
        source = self.text(frame.source)
        return frame if source == frame.source else _replace(frame, source=source)

    def _revision(self, revision: Revision) -> Revision:
        return _replace(revision, reason=self.text(revision.reason), message=self.message(revision.message))

    def _happening(self, line: Happening) -> Happening:
        before, after, reason = map(self.text, (line.before, line.after, line.reason))
        return _replace(line, before=before, after=after, reason=reason)

    def _optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)


def _properties(message: Message) -> bytes | None:
    """Where it was first read, if that is known and private to nobody."""
    in_kafka = kafka_origin.origin_of(message)
    if in_kafka is not None:
        return kafka_origin.properties_of(in_kafka)
    on_sqs = sqs_origin.origin_of(message)
    return None if on_sqs is None else sqs_origin.properties_of(on_sqs.without_what_is_private)

"""Who masks what, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.json_path import tokens_of
from redrive.privacy.maskers import Maskers
from redrive.privacy.rules import MaskingRules

if TYPE_CHECKING:
    from redrive.settings import MaskedSettings, Settings
    from redrive.stores.private import Privacy


def maskers_of(settings: Settings) -> Maskers:
    """A queue's own masking holds beside the general one."""
    general = _rules(settings.masking, enabled=settings.masking.enabled)
    queues = {
        name: _rules(queue.masking, enabled=_or(queue.masking.enabled, settings.masking.enabled))
        for name, queue in settings.queues.items()
        if queue.masking.model_fields_set
    }
    return Maskers(general, queues)


def privacy_of(settings: Settings) -> Privacy:
    """What a store keeps its plain columns and its search index by."""
    from redrive.stores.private import Privacy  # noqa: PLC0415  SQLAlchemy is slow to import

    secret = settings.masking.search_key
    return Privacy(
        maskers_of(settings), b"" if secret is None else secret.reveal().encode("utf-8", "surrogatepass")
    )


def _rules(masked: MaskedSettings, *, enabled: bool) -> MaskingRules:
    return MaskingRules(
        enabled=enabled,
        fields=masked.fields,
        hidden=tuple(map(tokens_of, masked.hidden)),
        shown=tuple(map(tokens_of, masked.shown)),
    )


def _or(own: bool | None, general: bool) -> bool:  # noqa: FBT001  one of two switches
    return general if own is None else own

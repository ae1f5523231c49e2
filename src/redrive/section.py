"""What every section of the settings is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Frozen, refuses keys it does not know, and never quotes a value in an error: it may be a secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

"""The desk's part about the doctor: see `redrive.actions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from redrive.access import Permission
from redrive.errors import NotFound
from redrive.standing import Standing

if TYPE_CHECKING:
    from redrive.examining import Doctor, Examination


class DoctorActions(Standing):
    _doctor: Doctor | None

    async def examination(self) -> Examination:
        """What was found last. Nothing is looked at for it."""
        return self._told((await self._asked()).told)

    async def examine(self) -> Examination:
        """Begins a look, unless there is one that is not older than a minute. Nobody waits for it here."""
        return self._told((await self._asked()).ask())

    async def _asked(self) -> Doctor:
        """It tells of every queue, of folders and of servers."""
        await self._may_everywhere(Permission.ADMINISTER)
        if self._doctor is None:
            raise NotFound("this process has no doctor", remedy="run `redrive doctor`")
        return self._doctor

    def _told(self, found: Examination) -> Examination:
        """Masked: names of queues and texts of servers are nobody's promise."""
        mask = self._masks.general.text
        findings = (replace(each, what=mask(each.what), remedy=mask(each.remedy)) for each in found.findings)
        return replace(found, findings=tuple(findings))

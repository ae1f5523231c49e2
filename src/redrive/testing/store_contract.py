"""The contract of `DeadLetterStore`: every promise of every method, for any driver.

A driver's test says where an empty store is and how to open it, and inherits the rest:

    class TestMyStore(StoreContract):
        @pytest.fixture
        def location(self, tmp_path):
            return f"mystore:///{tmp_path}/letters"

        def open(self, location, clock):
            return MyStore(location, clock=clock)

It overrides no test; what the driver cannot do it declares (`shared`). Needs pytest-asyncio in auto mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Status, Transition
from redrive.errors import Unreachable
from redrive.testing.letters import an_entry
from redrive.testing.store_case import ANN, ENGINE, LEASE, place, sent
from redrive.testing.store_contract_alert_groups import GroupNewsContract
from redrive.testing.store_contract_alert_rules import AlertRuleContract
from redrive.testing.store_contract_alerts import IncidentContract, ObservingContract, ProcessContract
from redrive.testing.store_contract_analyses import AnalysesContract
from redrive.testing.store_contract_archive import (
    EndedContract,
    GuardedPurgeContract,
    RestoreContract,
    WholeContract,
)
from redrive.testing.store_contract_change import ChangeContract, PurgeContract, ReviseContract
from redrive.testing.store_contract_duties import ClockNoteContract, DutyContract
from redrive.testing.store_contract_groups import AnnotateContract, MergeContract, SplitContract
from redrive.testing.store_contract_insights import InsightContract, SeenGroupContract
from redrive.testing.store_contract_lanes import LaneContract
from redrive.testing.store_contract_numbers import NumbersContract
from redrive.testing.store_contract_read import (
    FindContract,
    GetContract,
    GroupContract,
    SigningKeyContract,
    StatisticsContract,
)
from redrive.testing.store_contract_record import RecordContract
from redrive.testing.store_contract_redrive import ClaimContract, ConfirmContract, SettleContract
from redrive.testing.store_contract_return import ComingBackContract
from redrive.testing.store_contract_runs import ApprovalContract, RunContract, RunReportContract
from redrive.testing.store_contract_runs_ceilings import CeilingContract
from redrive.testing.store_contract_runs_doubt import DoubtContract
from redrive.testing.store_contract_runs_edit import EditingRunContract
from redrive.testing.store_contract_runs_quarantined import QuarantinedRunContract
from redrive.testing.store_contract_runs_settle import SettleTogetherContract, TakeOverContract
from redrive.testing.store_contract_runs_take import CanaryContract, PaceContract, TakeContract
from redrive.testing.store_contract_scope import ScopeContract, ScopedGroupContract, ScopedRunContract
from redrive.testing.store_contract_search import (
    CountContract,
    IndexContract,
    KnownValuesContract,
    SearchContract,
)
from redrive.testing.store_contract_transitions import TransitionContract

if TYPE_CHECKING:
    from redrive.stores import DeadLetterStore
    from redrive.testing.clock import ManualClock


class StoreContract(
    RecordContract,
    ComingBackContract,
    LaneContract,
    ClaimContract,
    SettleContract,
    ConfirmContract,
    TransitionContract,
    ChangeContract,
    ReviseContract,
    PurgeContract,
    GetContract,
    FindContract,
    SearchContract,
    IndexContract,
    CountContract,
    KnownValuesContract,
    GroupContract,
    AnnotateContract,
    MergeContract,
    SplitContract,
    StatisticsContract,
    NumbersContract,
    AnalysesContract,
    InsightContract,
    SeenGroupContract,
    SigningKeyContract,
    WholeContract,
    EndedContract,
    GuardedPurgeContract,
    RestoreContract,
    RunContract,
    ApprovalContract,
    RunReportContract,
    TakeContract,
    EditingRunContract,
    QuarantinedRunContract,
    DoubtContract,
    CeilingContract,
    PaceContract,
    CanaryContract,
    SettleTogetherContract,
    TakeOverContract,
    ScopeContract,
    ScopedGroupContract,
    ScopedRunContract,
    DutyContract,
    ClockNoteContract,
    ObservingContract,
    GroupNewsContract,
    AlertRuleContract,
    IncidentContract,
    ProcessContract,
):
    async def test_what_was_written_is_there_when_the_store_is_opened_again(
        self, location: str, clock: ManualClock
    ) -> None:
        if not self.shared:
            pytest.skip("the store does not outlive its instance")
        first = self.open(location, clock)
        placed = await place(first, Status.REDRIVEN)
        before = (await first.get(placed.id), await first.signing_key(), await first.groups())
        await first.close()

        second = self.open(location, clock)

        assert (await second.get(placed.id), await second.signing_key(), await second.groups()) == before
        assert await second.confirm(placed.claim.ticket, by=ANN)
        await second.close()

    async def test_a_life_is_told_from_beginning_to_end(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        [claim] = await store.claim([letter_id], owner="engine", lease=LEASE)
        await store.settle(claim, Transition.REFUSED, by=ENGINE)
        await store.change([letter_id], Transition.DISCARD, by=ANN)
        await store.change([letter_id], Transition.RESTORE, by=ANN)
        await store.revise(letter_id, claim.message.with_headers((("x", 1),)), base=0, by=ANN)
        await store.confirm((await sent(store, letter_id)).ticket, by=ANN)

        letter = await store.get(letter_id)

        assert letter is not None
        told = [
            "recorded",
            "claimed",
            "refused",
            "discarded",
            "restored",
            "edited",
            "claimed",
            "sent",
            "confirmed",
        ]
        assert [line.what for line in letter.history] == told

    async def test_a_closed_store_is_unreachable_and_may_be_closed_again(
        self, location: str, clock: ManualClock
    ) -> None:
        store = self.open(location, clock)
        letter_id, _ = await store.record(an_entry())
        await store.close()
        await store.close()

        with pytest.raises(Unreachable):
            await store.record(an_entry())
        with pytest.raises(Unreachable):
            await store.get(letter_id)

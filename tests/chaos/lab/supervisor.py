"""Starts the children of an experiment, counts their deaths, and asks the checker in the end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

from chaos.lab.checker import Verdict, gather, judge
from chaos.lab.history import LISTENS, OK, SENT, STRUCK, read_history
from chaos.lab.rows import wait_until_alone
from redrive.redriving import LEASE as CLAIM_LEASE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chaos.lab.premises import Premises

KILLED = -signal.SIGKILL
_PATIENCE = 60.0
_LAST_WORDS = 2.0
_TOLD = 4000


class Nursery:
    """Where children come from. Used as a context; one child at a time."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chaos.lab.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # `select` sees only what no buffer has swallowed
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "REDRIVE_FAULTS": ""},
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(_PATIENCE)
        self._process.stdout.close()

    def bear(self, order: dict[str, Any]) -> Child:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        return Child(self, self.heard(_PATIENCE))

    def heard(self, patience: float) -> int:
        """The next number it says. TimeoutError."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], patience)[0]:
            raise TimeoutError
        return int(self._process.stdout.readline())


class Child:
    def __init__(self, nursery: Nursery, process: int) -> None:
        self._nursery = nursery
        self.process = process
        self.exit_code: int | None = None

    def wait(self) -> int:
        """Its exit code; negative: the signal it died of. One that lives too long has to say where it stands."""
        if not self.ended_within(_PATIENCE):
            self.signal(signal.SIGUSR1)
            self.signal(signal.SIGUSR2)
            if not self.ended_within(_LAST_WORDS):
                self.signal(signal.SIGKILL)
                self.exit_code = self._nursery.heard(_PATIENCE)
            raise AssertionError(f"child {self.process} never ended: see the end of the log")
        assert self.exit_code is not None
        return self.exit_code

    def ended_within(self, seconds: float) -> bool:
        if self.exit_code is None:
            with contextlib.suppress(TimeoutError):
                self.exit_code = self._nursery.heard(seconds)
        return self.exit_code is not None

    def signal(self, number: signal.Signals) -> None:
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):  # dead already, and nobody has looked
                os.kill(self.process, number)


class Experiment:
    """One lot of files, the children that work on them, and the number of their violent deaths."""

    def __init__(self, premises: Premises, nursery: Nursery, seed: int) -> None:
        self.premises = premises
        self.nursery = nursery
        self.dice = random.Random(seed)  # noqa: S311  not a secret
        self.kills = 0
        self.oldest = 150
        """Seconds after which a child that nobody ends is ended by the system."""
        self._exposed: Counter[str] = Counter()
        """Of a Kafka: how often each message was not behind a commit when somebody died."""
        self._redriven = 0
        self._children: list[Child] = []
        sys.stdout.write(f"seed {seed}, files in {premises.folder}\n")  # shown if the test fails

    def start(self, role: str, faults: str = "", **arguments: Any) -> Child:
        self._wait_until_deaths_are_noticed()
        broker = self.premises.broker
        order = {
            "role": role,
            "faults": faults,
            "seed": self.dice.getrandbits(32),
            "oldest": self.oldest,
            "folder": str(self.premises.folder),
            "sink": self.premises.sink,
            "store_url": self.premises.store_url,
            "broker": [type(broker).__name__, broker.told()],
            "modules": broker.modules,
            "arguments": arguments,
        }
        self._children.append(self.nursery.bear(order))
        return self._children[-1]

    def run(self, role: str, faults: str = "", **arguments: Any) -> int:
        """Waits for it. It ends well, or by the fault that is armed."""
        return self.ended(self.start(role, faults, **arguments), faults)

    def ended(self, child: Child, faults: str) -> int:
        code = child.wait()
        ends = {0} | {KILLED if "kill9" in faults else 0} | {1 if "raise" in faults else 0}
        assert code in ends, f"with faults {faults!r} it ended with {code}: {self.told()}"
        if code == KILLED:
            self.note_death()
        return code

    def note_death(self) -> None:
        """Somebody was killed, and nobody has taken over from him yet."""
        self.kills += 1
        if self.premises.broker.commits_how_far:
            self._exposed.update(self.premises.broker.messages())

    def produce(self, *messages: tuple[str, str], times: int = 1) -> None:
        assert self.run("produce", messages=messages * times) == 0

    def start_redriving(self, faults: str = "") -> Child:
        """Each time later than the time before, so that what a killed one had claimed is taken over."""
        self._redriven += 1
        return self.start("redrive", faults, ahead=self._redriven * (CLAIM_LEASE + 1))

    def verdict(self, *, quiet: bool = True) -> Verdict:
        places = self.premises
        self._wait_until_deaths_are_noticed()
        if places.store_url is not None:
            wait_until_alone(places.store_url)
        evidence = gather(
            places.history, broker=places.broker, store=places.letters, effects=places.effects, spool=places.spool
        )
        return judge(evidence, quiet=quiet)

    def problems(self, in_flight: int | None, *, quiet: bool = True) -> list[str]:
        """What is wrong now that all is quiet. Each kill may repeat what was in flight, and nothing else.
        `None`: it may repeat anything.
        """
        verdict = self.verdict(quiet=quiet)
        assert verdict.acknowledged, "nothing was sent"
        if self.premises.broker.commits_how_far and in_flight is not None:
            return verdict.problems(duplicates_allowed=None, set_apart_allowed=self.kills) + self._unexplained()
        duplicates = None if in_flight is None else self.kills * in_flight
        return verdict.problems(duplicates_allowed=duplicates, set_apart_allowed=self.kills)

    def _unexplained(self) -> list[str]:
        """On a Kafka it is known what may be repeated: only what was not behind a commit at a death, once each."""
        handled = Counter(line["id"] for line in read_history(self.premises.history) if line["op"] == OK)
        return [
            f"{each} was handled {times} times, and lay there at {self._exposed[each]} deaths"
            for each, times in handled.items()
            if times > 1 + self._exposed[each]
        ]

    def acknowledged(self) -> int:
        """How many messages or letters somebody was told to be safe, so far."""
        return len({line["id"] for line in read_history(self.premises.history) if line["op"] == SENT})

    def handled(self) -> int:
        """How many messages a handler has ended well with, so far."""
        return len({line["id"] for line in read_history(self.premises.history) if line["op"] == OK})

    def struck(self, point: str) -> bool:
        """Whether that point raised or stood still in any child."""
        return any((line["op"], line["id"]) == (STRUCK, point) for line in read_history(self.premises.history))

    def wait_until_they_listen(self, workers: Sequence[Child]) -> None:
        """Until none of them would die of a SIGTERM."""
        while not {worker.process for worker in workers} <= self._listening():
            assert not any(worker.ended_within(0.01) for worker in workers), self.told()

    def _listening(self) -> set[int]:
        return {line["process"] for line in read_history(self.premises.history) if line["op"] == LISTENS}

    def _wait_until_deaths_are_noticed(self) -> None:
        """By a broker that is a server: until then it holds back what the dead had in hand."""
        self.premises.broker.bury({child.process for child in self._children if child.exit_code is None})

    def clean_up(self) -> None:
        """No child outlives its experiment, whatever became of the test."""
        for child in self._children:
            child.signal(signal.SIGKILL)
            child.wait()
        if self.premises.store_url is not None:
            wait_until_alone(self.premises.store_url)

    def told(self) -> str:
        """The end of what the children said."""
        log = self.premises.log
        return log.read_text(errors="replace")[-_TOLD:] if log.exists() else "(nothing)"

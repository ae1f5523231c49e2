"""K5 on RabbitMQ: every failpoint on the way of a message by {raise, hang}. Whatever breaks or stands still, the
process goes on or ends by itself with an error, and nothing is lost. (kill -9 is test_rabbitmq_kill.py.)

In short runs the driver's own points, each on one type of queues, in turn.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.lab.breaking import make_hang, make_raise
from chaos.lab.killing import problems_at_rest
from chaos.lab.rabbit import QUEUE_TYPES, Rabbit
from chaos.lab.scenarios import ON_RABBITMQ, Scenario
from chaos.lab.supervisor import Experiment, Nursery
from support.amounts import LONG

CASES = [
    pytest.param(queue_type, point, scenario, id=f"{queue_type}-{point}-{scenario.__name__}")
    for number, (point, several) in enumerate(ON_RABBITMQ.items())
    if LONG or point.startswith("rabbitmq.")
    for scenario in (several if LONG else several[:1])
    for queue_type in (QUEUE_TYPES if LONG else [QUEUE_TYPES[number % 2]])
]


@pytest.mark.parametrize(("rabbit", "point", "scenario"), CASES, indirect=["rabbit"])
def test_an_error_at_this_point_loses_nothing(
    point: str, scenario: type[Scenario], experiment: Callable[..., Experiment], rabbit: Rabbit
) -> None:
    lab, play = experiment(sink=scenario.sink, broker=rabbit), scenario(lots=5)

    make_raise(lab, play, point)

    assert problems_at_rest(lab, play, in_flight=None, quiet=False) == []


@pytest.mark.parametrize(("rabbit", "point", "scenario"), CASES, indirect=["rabbit"])
def test_a_process_that_stands_still_at_this_point_loses_nothing(
    point: str,
    scenario: type[Scenario],
    experiment: Callable[..., Experiment],
    second_nursery: Nursery,
    rabbit: Rabbit,
) -> None:
    lab, play = experiment(sink=scenario.sink, broker=rabbit), scenario(lots=1)

    make_hang(lab, play, point, second_nursery)

    assert problems_at_rest(lab, play, in_flight=None) == []

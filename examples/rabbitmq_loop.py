"""A loop that the broker turns by itself: a rejected message waits in `.deadletter` until its TTL is over, and
comes back. After so many rounds it is put into `.limbu`, which nobody consumes. Each queue has its own TTL and
number of rounds, in rabbitmq_loop.toml. Queues that exist already are used as they are.

redrive -c rabbitmq_loop.toml setup rabbitmq_loop:app
redrive -c rabbitmq_loop.toml send sgp.frequencia.calculo '{"turma": 7}'
redrive -c rabbitmq_loop.toml work rabbitmq_loop:app --drain
redrive -c rabbitmq_loop.toml collect sgp.frequencia.calculo.limbu --once
redrive -c rabbitmq_loop.toml list
"""

from __future__ import annotations

from dataclasses import dataclass

from redrive import App

app = App("sgp")


@dataclass
class Turma:
    turma: int


@app.handler("sgp.frequencia.calculo")
async def frequency(turma: Turma) -> None:
    print("calculating", turma.turma)
    raise TimeoutError("the database does not answer")


@app.handler("sgp.fechamento.reabertura.notificacao.dre")
async def notice(turma: Turma) -> None:
    print("notifying", turma.turma)
    raise TimeoutError("the mail server does not answer")

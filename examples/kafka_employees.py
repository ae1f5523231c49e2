"""Events of employees from Kafka, and those that are wrong in PostgreSQL, beside the service's own tables.

psql esocial -f kafka_employees.sql
redrive -c kafka_employees.toml setup kafka_employees:app
redrive -c kafka_employees.toml work kafka_employees:app
psql esocial -f kafka_employees_queries.sql
redrive -c kafka_employees.toml list
redrive -c kafka_employees.toml serve

What is not valid is dead-lettered at once, malformed JSON too, for no retry would help. An employee who is not
known may still be on the way, in another topic: that is tried three times.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import asyncpg
import msgspec

from redrive import App, Permanent, Retry, Transient, fixed

DATABASE = os.environ.get("EMPLOYEES_URL", "postgresql://localhost/esocial")
YOUNGEST = 16

app = App("esocial", retry=Retry(3, fixed("500ms")))


class EmployeeEvent(msgspec.Struct, rename="camel", kw_only=True):
    event_id: str
    event_type: str
    employee_id: str
    correlation_id: str


class EmployeeCreated(EmployeeEvent, kw_only=True):
    cpf: str
    name: str
    born_on: date
    hired_on: date


class EmployeeUpdated(EmployeeEvent, kw_only=True):
    cpf: str
    name: str


class EmployeeDeleted(EmployeeEvent, kw_only=True):
    dismissed_on: date


class InvalidEvent(Permanent):
    """It says everything that is wrong with the event, in one line."""

    def __init__(self, wrong: list[str]) -> None:
        super().__init__("Falha na validação: " + "; ".join(wrong))


class UnknownEmployee(Transient):
    pass


@app.handler("employee-create")
async def create(event: EmployeeCreated) -> None:
    check(
        {
            "CPF inválido": not is_cpf(event.cpf),
            "datas inconsistentes": event.hired_on < event.born_on,
            f"idade menor que {YOUNGEST} anos": 0 <= age(event.born_on, on=event.hired_on) < YOUNGEST,
        }
    )
    async with employees() as table:
        await table.execute(
            "INSERT INTO employees (id, cpf, name, hired_on) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING",
            *(event.employee_id, event.cpf, event.name, event.hired_on),
        )


@app.handler("employee-update")
async def update(event: EmployeeUpdated) -> None:
    check({"CPF inválido": not is_cpf(event.cpf), "nome vazio": not event.name.strip()})
    async with employees() as table:
        await hired_on(table, event)
        await table.execute(
            "UPDATE employees SET cpf = $2, name = $3 WHERE id = $1", event.employee_id, event.cpf, event.name
        )


@app.handler("employee-delete")
async def delete(event: EmployeeDeleted) -> None:
    async with employees() as table:
        check({"datas inconsistentes": event.dismissed_on < await hired_on(table, event)})
        await table.execute(
            "UPDATE employees SET dismissed_on = $2 WHERE id = $1", event.employee_id, event.dismissed_on
        )


def check(rules: dict[str, bool]) -> None:
    wrong = [rule for rule, is_broken in rules.items() if is_broken]
    if wrong:
        raise InvalidEvent(wrong)


def is_cpf(text: str) -> bool:
    """Eleven digits, with or without their points, of which the last two are computed from the others."""
    if not re.fullmatch(r"[0-9]{3}\.?[0-9]{3}\.?[0-9]{3}-?[0-9]{2}", text):
        return False
    digits = [int(each) for each in text if each not in ".-"]
    return len(set(digits)) > 1 and all(digits[place] == check_digit(digits[:place]) for place in (9, 10))


def check_digit(digits: list[int]) -> int:
    weights = range(len(digits) + 1, 1, -1)
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=True)) * 10 % 11 % 10


def age(born: date, *, on: date) -> int:
    return on.year - born.year - ((on.month, on.day) < (born.month, born.day))


async def hired_on(table: Any, event: EmployeeEvent) -> date:
    found: date | None = await table.fetchval("SELECT hired_on FROM employees WHERE id = $1", event.employee_id)
    if found is None:
        raise UnknownEmployee("Funcionário desconhecido")
    return found


@asynccontextmanager
async def employees() -> AsyncIterator[Any]:
    connection = await asyncpg.connect(DATABASE)
    try:
        yield connection
    finally:
        await connection.close()

"""An effect that happens once per message, however often it comes: the mark and the booking commit together.

redrive send payments '{"account": "A-1", "amount": 50}'
redrive work once_with_inbox:app --drain
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from redrive import App, SqliteInbox


def prepare(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS bookings (account TEXT, amount REAL)")


app = App("bank")
inbox = SqliteInbox("bank.db", prepare=prepare)


@dataclass
class Payment:
    account: str
    amount: float


@app.handler("payments", inbox=inbox)
async def book(payment: Payment, transaction: sqlite3.Connection) -> None:
    transaction.execute("INSERT INTO bookings VALUES (?, ?)", (payment.account, payment.amount))

from __future__ import annotations

from pathlib import Path

import pytest

from support.store_database import Database, FileDatabase, ServerDatabase


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "letters.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, file: Path) -> Database:
    if request.param == "sqlite":
        return FileDatabase(file)
    return ServerDatabase(request.getfixturevalue("postgres"), request.getfixturevalue("postgres_url"))

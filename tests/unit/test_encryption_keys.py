"""Where key-encryption keys come from, and what the settings make of them."""

from __future__ import annotations

import base64
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from redrive.configuration import load
from redrive.encryption_wiring import file_keys, key_source, keys_by_place
from redrive.errors import ConfigurationError, KeyMissing, Refused
from redrive.key_sources import key_in, key_of, make_key
from redrive.settings import Settings
from support.sealing import KEY, OLD_KEY, OLD_SECRET, SECRET


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def key_file(path: Path, text: str = SECRET.hex(), mode: int = 0o600) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def loaded(text: str = "", **environ: str) -> Settings:
    Path("redrive.toml").write_text(text)
    return load(environ=environ).settings


@pytest.mark.parametrize(
    "text", [SECRET.hex(), SECRET.hex().upper(), f"  {SECRET.hex()}\n", base64.b64encode(SECRET).decode()]
)
def test_a_key_is_hexadecimal_digits_or_base64(text: str) -> None:
    assert key_of(text).id == KEY.id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        "x" * 64,
        SECRET.hex()[:-1],
        SECRET.hex() + "00",
        base64.b64encode(b"short").decode(),
        "é" * 64,
    ],
)
def test_what_is_no_key_is_refused_and_never_quoted(text: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        key_of(text)
    assert not text or text not in f"{told.value} {told.value.remedy}"
    assert "keys new" in told.value.remedy


def test_a_key_of_one_byte_again_and_again_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="again and again"):
        key_of("00" * 32)


def test_a_file_must_be_its_owners_alone(folder: Path) -> None:
    for mode in (0o604, 0o640, 0o660, 0o644, 0o601):
        with pytest.raises(ConfigurationError, match="others may read") as told:
            key_in(key_file(folder / "key", mode=mode))
        assert told.value.remedy == f"chmod 600 {folder / 'key'}"
    for mode in (0o600, 0o400):
        assert key_in(key_file(folder / "key", mode=mode)).id == KEY.id
        (folder / "key").unlink()


def test_a_file_that_is_not_there_or_holds_no_key_is_told(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file") as told:
        key_in(folder / "nosuch")
    assert "keys new" in told.value.remedy
    (folder / "bytes").write_bytes(b"\xff" * 64)
    (folder / "bytes").chmod(0o600)
    for path in (folder / "bytes", key_file(folder / "text", "no key")):
        with pytest.raises(ConfigurationError, match="is none"):
            key_in(path)
    with pytest.raises(ConfigurationError):
        key_in(folder)


def test_a_new_key_is_random_for_its_owner_alone_and_never_overwrites(folder: Path) -> None:
    made = make_key(folder / "keys" / "one")
    assert make_key(folder / "keys" / "two").id != made.id
    assert key_in(folder / "keys" / "one").id == made.id
    assert stat.S_IMODE((folder / "keys" / "one").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "keys").stat().st_mode) == 0o700
    with pytest.raises(Refused, match="already"):
        make_key(folder / "keys" / "one")
    assert key_in(folder / "keys" / "one").id == made.id
    assert sorted(path.name for path in (folder / "keys").iterdir()) == ["one", "two"]


def test_a_place_that_cannot_be_written_is_told(folder: Path) -> None:
    (folder / "file").write_text("")
    for path in (folder / "file" / "key", folder / "file" / "below" / "key", folder / ("x" * 250)):
        with pytest.raises(ConfigurationError, match="cannot make the key"):
            make_key(path)
    assert [path.name for path in folder.iterdir()] == ["file"]


# Settings


def test_by_default_nothing_is_sealed_and_nothing_is_made(folder: Path) -> None:
    settings = loaded()
    assert not settings.encryption.enabled
    assert not file_keys(settings).seals
    assert key_source(settings) is None
    assert [path.name for path in folder.iterdir()] == ["redrive.toml"]


def test_encryption_without_a_key_does_not_begin_and_makes_none(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read the encryption key"):
        file_keys(loaded("[encryption]\nenabled = true\n"))
    assert [path.name for path in folder.iterdir()] == ["redrive.toml"]


def test_the_key_of_the_setting_wins_over_the_file_and_older_ones_follow(folder: Path) -> None:
    key_file(folder / "mine", OLD_SECRET.hex())
    text = f"[encryption]\nenabled = true\nkey_path = '{folder}/mine'\nold_keys = ['{folder}/mine']\n"
    settings = loaded(text, REDRIVE_ENCRYPTION__KEY=SECRET.hex())
    assert [(place, key.id) for place, key in keys_by_place(settings)] == [
        ("encryption.key", KEY.id),
        (f"{folder}/mine", OLD_KEY.id),
    ]
    source = key_source(settings)
    assert source is not None
    assert (source.current, source.known) == (KEY.id, (KEY.id, OLD_KEY.id))
    assert file_keys(settings).seals


def test_the_key_can_come_from_a_file_named_by_a_variable(folder: Path) -> None:
    path = key_file(folder / "mounted", SECRET.hex() + "\n", mode=0o644)
    settings = loaded("[encryption]\nenabled = true\n", REDRIVE_ENCRYPTION__KEY_FILE=str(path))
    source = key_source(settings)
    assert source is not None
    assert source.current == KEY.id


def test_older_keys_can_be_named_by_a_variable(folder: Path) -> None:
    key_file(folder / "a")
    key_file(folder / "b", OLD_SECRET.hex())
    settings = loaded(REDRIVE_ENCRYPTION__OLD_KEYS=f"{folder}/a, {folder}/b")
    source = key_source(settings)
    assert source is not None
    assert source.known == (KEY.id, OLD_KEY.id)


def test_keys_still_open_when_encryption_is_off_again(folder: Path) -> None:
    key_file(folder / ".redrive" / "encryption.key")
    sealed = file_keys(loaded("[encryption]\nenabled = true\n")).new("spool")
    off = file_keys(loaded())
    assert not off.seals
    assert off.read("spool", sealed.header).open(sealed.seal(b"x", of="a"), of="a") == b"x"
    (folder / ".redrive" / "encryption.key").unlink()
    with pytest.raises(KeyMissing):
        file_keys(loaded()).read("spool", sealed.header)


def test_the_key_is_shown_nowhere(folder: Path) -> None:
    settings = loaded(REDRIVE_ENCRYPTION__KEY=SECRET.hex())
    assert SECRET.hex() not in f"{settings!r} {settings} {settings.model_dump()} {folder}"


def test_whoever_does_not_seal_does_not_load_what_seals() -> None:
    program = (
        "import sys, redrive.wiring, redrive.upkeep.spool, redrive.upkeep.archive, redrive.imports\n"
        "from redrive.encryption_wiring import file_keys\n"
        "from redrive.settings import Settings\n"
        "file_keys(Settings())\n"
        "assert 'redrive.privacy.encryption.aes' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

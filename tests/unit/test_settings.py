"""Settings: sources in rising order, nothing unknown, nothing secret shown (DESIGN 5.5)."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from redrive.configuration import Configuration, Flag, Inspection, inspect, load
from redrive.configuration.environment import SECRETS
from redrive.configuration.layer import Layer
from redrive.configuration.tree import field_at, leaves, text_of
from redrive.errors import ConfigurationError
from redrive.secret_url import SecretUrl
from redrive.setting_values import SECRET as SECRET_FIELD
from redrive.setting_values import size
from redrive.settings import QueueSettings, RetrySettings, Settings

EXAMPLE = Path(__file__).parents[2] / "redrive.example.toml"
S2_HOURS = 3600.0


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder; no test reads a file of the machine it runs on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("redrive.configuration.file._SYSTEM_FOLDER", tmp_path / "etc")
    return tmp_path


def loaded(
    text: str = "", *, profile: str | None = None, flags: tuple[Flag, ...] = (), **environ: str
) -> Configuration:
    if text:
        Path("redrive.toml").write_text(text)
    return load(profile=profile, flags=flags, environ=environ)


def inspected(text: str = "", *, profile: str | None = None, **environ: str) -> Inspection:
    if text:
        Path("redrive.toml").write_text(text)
    return inspect(profile=profile, environ=environ)


def only_problem(text: str = "", **environ: str) -> tuple[str, str]:
    [problem] = inspected(text, **environ).problems
    return str(problem), problem.remedy


# Sources


def test_no_configuration_at_all_means_files_in_the_working_folder() -> None:
    configuration = loaded()
    assert configuration.settings == Settings()
    assert configuration.file is None
    assert configuration.settings.broker.url.reveal() == "embedded:///redrive-broker.db"
    assert configuration.settings.store.url.reveal() == "sqlite:///redrive.db"


def test_file_profile_variable_and_flag_win_in_that_order() -> None:
    text = """
    [worker]
    concurrency = 1
    grace = "1s"
    breaker_failures = 1
    handler_timeout = "1s"
    [profiles.p.worker]
    concurrency = 2
    grace = "2s"
    breaker_failures = 2
    """
    flag = Flag("--concurrency", ("worker", "concurrency"), 4)
    configuration = loaded(
        text, profile="p", flags=(flag,), REDRIVE_WORKER__CONCURRENCY="3", REDRIVE_WORKER__GRACE="3s"
    )
    worker = configuration.settings.worker
    assert (worker.handler_timeout, worker.breaker_failures, worker.grace, worker.concurrency) == (1, 2, 3, 4)
    keys = ("handler_timeout", "breaker_failures", "grace", "concurrency", "breaker_pause")
    assert [configuration.origin(("worker", key)) for key in keys] == [
        "redrive.toml, line 6",
        "redrive.toml, line 10",
        "variable REDRIVE_WORKER__GRACE",
        "option --concurrency",
        "default",
    ]


def test_the_profile_can_come_from_a_variable_and_the_option_wins() -> None:
    text = "[profiles.a.retry]\nattempts = 2\n[profiles.b.retry]\nattempts = 3\n"
    assert loaded(text, REDRIVE_PROFILE="a").settings.retry.attempts == 2
    assert loaded(text, profile="b", REDRIVE_PROFILE="a").settings.retry.attempts == 3


def test_the_first_file_found_is_used_alone(folder: Path) -> None:
    places = [folder / "named.toml", folder / "variable.toml", folder / "redrive.toml"]
    places += [folder / "xdg/redrive/redrive.toml", folder / "etc/redrive.toml"]
    for number, place in enumerate(places, start=1):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"[retry]\nattempts = {number}\n")
    environ = {"REDRIVE_CONFIG": str(places[1]), "XDG_CONFIG_HOME": str(folder / "xdg")}
    assert load(config=places[0], environ=environ).settings.retry.attempts == 1
    assert load(environ=environ).settings.retry.attempts == 2
    del environ["REDRIVE_CONFIG"]
    for number in (3, 4, 5):
        assert load(environ=environ).settings.retry.attempts == number
        places[number - 1].unlink()
    assert load(environ=environ).file is None


def test_the_users_folder_is_under_home_without_xdg(folder: Path) -> None:
    place = folder / ".config/redrive/redrive.toml"
    place.parent.mkdir(parents=True)
    place.write_text("[retry]\nattempts = 7\n")
    assert load(environ={"HOME": str(folder)}).settings.retry.attempts == 7


# Values


def test_zero_is_a_value_and_none_is_unset() -> None:
    text = "[dead_letters]\nexpire_after = 0\n[worker]\nhandler_timeout = 0\nbreaker_failures = 0\n"
    settings = loaded(text, REDRIVE_RETRY__BUDGET="0").settings
    assert settings.dead_letters.expire_after == 0
    assert settings.retry.budget == 0
    assert (settings.worker.handler_timeout, settings.worker.breaker_failures) == (0, 0)
    assert Settings().dead_letters.expire_after is None
    assert Settings().retry.budget is None


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("", None),
        ("sink = 'both'", None),
        ("expire = true", 3 * 86400),
        ("expire = false", None),
        ("expire_after = '1d'", 86400),
        ("expire_after = '1d'\nexpire = false", None),
        ("expire_after = '1d'\nexpire = true", 86400),
        ("expire_after = 'none'", None),
    ],
)
def test_letters_expire_only_in_a_queue_that_asks_for_it_itself(own: str, expected: float | None) -> None:
    """T19 is opt-in per queue: a general time, as profiles have it, is only how long."""
    queue = f"[queues.orders]\nconcurrency = 2\n[queues.orders.dead_letters]\n{own}"
    text = f"[dead_letters]\nexpire_after = '3d'\n{queue}"
    settings = loaded(text).settings
    assert settings.for_queue("orders").dead_letters.expire_after == expected
    assert settings.for_queue("not named").dead_letters.expire_after is None
    assert settings.dead_letters.expire_after == 3 * 86400


def test_a_queue_that_lets_its_letters_expire_needs_a_time() -> None:
    with pytest.raises(ConfigurationError, match="expire_after"):
        loaded("[queues.orders.dead_letters]\nexpire = true")
    with pytest.raises(ConfigurationError, match="expire"):
        loaded("[dead_letters]\nexpire = true")


@pytest.mark.parametrize("url", ["s3://bucket", "/srv/copies", "file://host/copies", "file:///"])
def test_a_place_for_copies_that_nobody_could_copy_to_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigurationError, match="copy_to"):
        loaded(f"[retention]\ncopy_to = '{url}'")


def test_a_stronger_source_can_unset_what_a_weaker_one_set() -> None:
    text = "[dead_letters]\nexpire_after = '1d'\n[profiles.p.dead_letters]\nexpire_after = 'none'\n"
    assert loaded(text).settings.dead_letters.expire_after == 86400
    assert loaded(text, profile="p").settings.dead_letters.expire_after is None
    assert loaded(text, REDRIVE_DEAD_LETTERS__EXPIRE_AFTER="none").settings.dead_letters.expire_after is None


def test_durations_sizes_and_lists_are_written_as_people_write_them() -> None:
    settings = loaded(
        "[retry]\ninitial_delay = 2.5\ndelays = ['100ms', 2, '1m30s']\n[spool]\nmax_size = '64MiB'\n",
        REDRIVE_WORKER__GRACE="1m",
    ).settings
    assert settings.retry.initial_delay == 2.5
    assert settings.retry.delays == (0.1, 2.0, 90.0)
    assert settings.spool.max_size == 64 * 2**20
    assert settings.worker.grace == 60
    assert loaded(REDRIVE_RETRY__DELAYS="1s, 2s").settings.retry.delays == (1.0, 2.0)


@pytest.mark.parametrize(
    ("written", "read"), [("10", 10), (10, 10), ("1.5KiB", 1536), ("2 MB", 2_000_000), ("1GiB", 2**30)]
)
def test_sizes(written: object, read: int) -> None:
    assert size(written) == read


@pytest.mark.parametrize("wrong", ["", "many", "-1", -1, True, "1TiBB", None, 1.5])
def test_what_is_no_size_says_how_to_write_one(wrong: object) -> None:
    with pytest.raises(ValueError, match="write it like '64MiB'"):
        size(wrong)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("[retry]\nattempts = 0", 2, "retry.attempts should be greater than or equal to 1"),
        ("[retry]\nattempts = true", 2, "retry.attempts should be a number, not true or false"),
        ("[retry]\nattempts = 2.5", 2, "retry.attempts should be a valid integer"),
        ("[retry]\njitter = 'half'", 2, "retry.jitter should be 'full', 'equal' or 'none'"),
        ("[retry]\ninitial_delay = 'soon'", 2, "'soon' is not a duration"),
        ("[retry]\ninitial_delay = [1]", 2, "retry.initial_delay: [1] is not a duration"),
        ("[retry]\nfactor = 0.5", 2, "retry.factor should be greater than or equal to 1"),
        ("[retry]\ndelays = []", 1, "delays should hold at least one delay"),
        ("[retry]\nimmediate = 51", 1, "immediate times immediate_delay should be at most 5s"),
        ("[retry]\nmax_delay = '1s'", 1, "max_delay should not be shorter than initial_delay"),
        ("[broker]\nlease = 0", 2, "broker.lease should be greater than 0"),
        ("[broker]\nretry_queue = 'retry'", 2, "broker.retry_queue should hold {queue} once"),
        ("[broker]\nretry_queue = '{queue}.{x}'", 2, "broker.retry_queue should hold {queue} once"),
        ("[broker]\ndead_letter_queue = '{queue}'", 2, "should add something to {queue}"),
        ("[broker]\nretry_queue = '{queue}_dlq'", 1, "retry_queue and dead_letter_queue should differ"),
        (
            "[broker]\nurl = 'amqp://h'\nretry_queue = 'dlq.{queue}'\nrabbitmq.topology = 'dead-letter-exchange'",
            1,
            "retry_queue and dead_letter_queue should differ",
        ),
        ("[broker.rabbitmq]\ntopology = 'star'", 2, "broker.rabbitmq.topology should be 'delay-queues', 'plain"),
        ("[broker.rabbitmq]\nmax_priority = 9", 1, "max_priority needs queue_type = 'classic': quorum queues"),
        ("[broker.rabbitmq]\nmax_priority = 256\nqueue_type = 'classic'", 2, "less than or equal to 255"),
        ("[broker.rabbitmq]\nheartbeat = 0", 2, "broker.rabbitmq.heartbeat should be greater than 0"),
        ("[broker.rabbitmq]\ntls_key = 'key.pem'", 1, "tls_key needs tls_certificate"),
        ("[queues.orders.loop]\nttl = 0", 2, "queues.orders.loop.ttl should be greater than 0"),
        ("[worker]\nprefetch = 0", 2, "worker.prefetch should be greater than or equal to 1"),
        ("[spool]\nmax_size = 'big'", 2, "'big' is not a size"),
        ("[log]\nlevel = 'loud'", 2, "log.level should be 'debug', 'info', 'warning' or 'error'"),
        ("retry = 3", 1, "retry should be a table"),
        ("queues = 3", 1, "queues should be a table"),
        ("[queues]\norders = 3", 2, "queues.orders should be a table"),
        ("profiles = 3", 1, "profiles should be tables"),
    ],
)
def test_a_value_that_cannot_be_used_is_told_with_its_line(text: str, line: int, told: str) -> None:
    problem, remedy = only_problem(text)
    assert told in problem
    assert problem.startswith(f"redrive.toml, line {line}: ")
    assert remedy


def test_fifty_immediate_retries_of_100_ms_are_just_allowed() -> None:
    assert loaded("[retry]\nimmediate = 50").settings.retry.immediate == 50


# Queues


def test_a_queue_inherits_what_it_does_not_say() -> None:
    text = """
    [worker]
    concurrency = 4
    handler_timeout = "1m"
    [retry]
    attempts = 3
    jitter = "none"
    [queues.orders]
    concurrency = 2
    [queues.orders.retry]
    attempts = 8
    [queues.orders.dead_letters]
    sink = "queue"
    """
    settings = loaded(text).settings
    orders, others = settings.for_queue("orders"), settings.for_queue("mails")
    assert (orders.concurrency, orders.handler_timeout) == (2, 60)
    assert (orders.retry.attempts, orders.retry.jitter, orders.dead_letters.sink) == (8, "none", "queue")
    assert (others.concurrency, others.handler_timeout) == (4, 60)
    assert (others.retry.attempts, others.dead_letters.sink) == (3, "store")


def test_a_queue_of_settings_made_in_code_inherits_too() -> None:
    queue = QueueSettings(retry=RetrySettings(attempts=9))
    settings = Settings(retry=RetrySettings(jitter="none"), queues={"orders": queue})
    assert settings.for_queue("orders").retry == RetrySettings(attempts=9, jitter="none")


def test_a_flag_wins_over_a_queues_own_value() -> None:
    flag = Flag("--concurrency", ("worker", "concurrency"), 1)
    settings = loaded("[queues.orders]\nconcurrency = 5\nbreaker_failures = 3\n", flags=(flag,)).settings
    assert settings.for_queue("orders").concurrency == 1
    assert settings.for_queue("orders").breaker_failures == 3


def test_a_variable_can_be_about_one_queue() -> None:
    settings = loaded(REDRIVE_QUEUES__ORDERS__RETRY__ATTEMPTS="9").settings
    assert settings.for_queue("orders").retry.attempts == 9


def test_a_wrong_general_value_is_told_once_however_many_queues_inherit_it() -> None:
    problem, _ = only_problem(
        "[retry]\nattempts = 0\n[queues.a.retry]\njitter = 'none'\n[queues.b]\nconcurrency = 1\n"
    )
    assert problem == "redrive.toml, line 2: retry.attempts should be greater than or equal to 1"


# Unknown keys


@pytest.mark.parametrize(
    ("text", "line", "key", "nearest"),
    [
        ("[brokr]\nurl = 'x://'", 1, "brokr", "did you mean broker?"),
        ("# attemps\n[retry]\nattemps = 3", 3, "retry.attemps", "did you mean retry.attempts?"),
        ("retry.attemps = 3", 1, "retry.attemps", "did you mean retry.attempts?"),
        ("retry = {attemps = 3}", 1, "retry.attemps", "did you mean retry.attempts?"),
        ("[retry]\ndelayss = [\n'1s',\n'2s',\n]", 2, "retry.delayss", "did you mean retry.delays?"),
        ("[worker]\nattempts = 3", 2, "worker.attempts", "did you mean retry.attempts?"),
        ("[broker]\ntopology = 'x'", 2, "broker.topology", "did you mean broker.rabbitmq.topology?"),
        ("[store]\ncolour = 'red'", 2, "store.colour", "known here: url"),
        (
            "[queues.orders]\nconcurency = 3",
            2,
            "queues.orders.concurency",
            "did you mean queues.orders.concurrency?",
        ),
        (
            "[queues.orders.retry]\nattemps = 3",
            2,
            "queues.orders.retry.attemps",
            "did you mean queues.orders.retry.attempts?",
        ),
        ("[queues.orders]\ngrace = 3", 2, "queues.orders.grace", "did you mean worker.grace?"),
        (
            "[profiles.production.retry]\nattemps = 3",
            2,
            "retry.attemps",
            "did you mean profiles.production.retry.attempts?",
        ),
        ("[profiles.a]\n[profiles.a.profiles.b]\n", 2, "profiles", "known here: app, broker"),
    ],
)
def test_an_unknown_key_in_the_file_is_told_with_line_and_nearest_key(
    text: str, line: int, key: str, nearest: str
) -> None:
    problem, remedy = only_problem(text)
    assert problem == f"redrive.toml, line {line}: unknown setting '{key}'"
    assert remedy.startswith(nearest)
    with pytest.raises(ConfigurationError, match=f"line {line}: unknown setting") as refused:
        loaded(text)
    assert refused.value.remedy == remedy


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("REDRIVE_RETRY__ATTEMPS", "did you mean REDRIVE_RETRY__ATTEMPTS?"),
        ("REDRIVE_RETRI__ATTEMPTS", "did you mean REDRIVE_RETRY__KEY?"),
        ("REDRIVE_QUEUES__ORDERS__RETRY__ATTEMPS", "did you mean REDRIVE_QUEUES__ORDERS__RETRY__ATTEMPTS?"),
        ("REDRIVE_BROKER_URL", "write two underscores: REDRIVE_BROKER__URL"),
        ("REDRIVE_DEAD_LETTERS_SINK", "write two underscores: REDRIVE_DEAD_LETTERS__SINK"),
        ("REDRIVE_SPOOL__FOLDER_FILE", "did you mean REDRIVE_SPOOL__FOLDER?"),
    ],
)
def test_an_unknown_variable_is_told_by_its_name_and_the_nearest_one(name: str, nearest: str) -> None:
    problem, remedy = only_problem(**{name: "3"})
    assert problem.startswith(f"variable {name}: unknown setting")
    assert remedy == nearest


def test_variables_that_are_no_settings_are_left_alone() -> None:
    assert not inspected(REDRIVE_FAULTS="", REDRIVE_TRACEBACK="1", REDRIVE_CHAOS_KILLS="3", PATH="/bin").problems


def test_every_problem_is_found_at_once_and_the_first_one_says_how_many_more() -> None:
    text = "[retry]\nattemps = 3\njitter = 'x'\n[profiles.unused.log]\nlevl = 'info'\n"
    assert len(inspected(text, REDRIVE_LOG__X="1").problems) == 4
    with pytest.raises(ConfigurationError, match="and 3 more: `redrive config check`"):
        loaded(text, REDRIVE_LOG__X="1")


def test_a_profile_that_does_not_exist_is_told_with_those_that_do() -> None:
    [problem] = inspected("[profiles.production.log]\nlevel = 'info'\n", profile="prod").problems
    assert str(problem) == "redrive.toml: there is no profile 'prod'"
    assert problem.remedy == "it has: production"
    Path("redrive.toml").unlink()
    [problem] = inspected(profile="prod").problems
    assert "needs a settings file" in str(problem)


# Files that cannot be read


def test_files_that_cannot_be_read_say_why_and_what_to_do(folder: Path) -> None:
    (folder / "latin.toml").write_bytes(b"[app]\nname = '\xe9'\n")
    (folder / "broken.toml").write_text("[retry]\nattempts = = 3\n")
    for name, told in (
        ("missing.toml", "there is no settings file"),
        (".", "Is a directory"),
        ("latin.toml", "is not text"),
        ("broken.toml", "line 2"),
    ):
        with pytest.raises(ConfigurationError, match=told) as refused:
            load(config=folder / name, environ={})
        assert refused.value.remedy


# Secrets


SECRET = "amqp://guest:p@ss/w0rd@broker:5672/v?heartbeat=5&token=t0ken"  # noqa: S105  made up, to be looked for


def test_a_url_hides_its_password_wherever_it_is_shown() -> None:
    configuration = loaded(REDRIVE_BROKER__URL=SECRET)
    url = configuration.settings.broker.url
    shown = (str(url), repr(url), f"{url}", repr(configuration), str(configuration.settings), repr(inspected()))
    for text in shown:
        assert "w0rd" not in text
        assert "t0ken" not in text
    assert str(url) == "amqp://guest:***@broker:5672/v?heartbeat=5&token=***"
    assert url.reveal() == SECRET


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///redrive.db", "sqlite:///redrive.db"),
        ("amqp://host/v", "amqp://host/v"),
        ("amqp://user@host", "amqp://user@host"),
        ("amqp://:pw@host", "amqp://:***@host"),
        ("amqp://u:p:w@host", "amqp://u:***@host"),
        (
            "postgresql://u:pw@h/d?sslpassword=x&application_name=y",
            "postgresql://u:***@h/d?sslpassword=***&application_name=y",
        ),
    ],
)
def test_only_what_is_secret_is_hidden(url: str, shown: str) -> None:
    assert str(SecretUrl(url)) == shown


def test_no_error_repeats_a_secret() -> None:
    inspection = inspected(
        REDRIVE_BROKER__URL="guest:w0rd@broker", REDRIVE_STORE__URL="w0rd", REDRIVE_STORE__URLL="w0rd"
    )
    assert len(inspection.problems) == 3
    told = " ".join(f"{problem} {problem.remedy} {problem!r}" for problem in inspection.problems)
    assert "w0rd" not in told


def test_not_even_pydantics_own_error_repeats_a_secret() -> None:
    with pytest.raises(ValidationError) as refused:
        Settings.model_validate({"broker": {"url": "w0rd"}, "store": {"urll": "w0rd"}})
    assert "w0rd" not in str(refused.value)


def test_a_secret_can_come_from_a_file(folder: Path) -> None:
    (folder / "secret").write_text(SECRET + "\n")
    configuration = loaded(REDRIVE_BROKER__URL_FILE=str(folder / "secret"))
    assert configuration.settings.broker.url.reveal() == SECRET
    assert configuration.origin(("broker", "url")) == "variable REDRIVE_BROKER__URL_FILE"


def test_a_secret_file_that_is_missing_or_meant_twice_is_told(folder: Path) -> None:
    problem, remedy = only_problem(REDRIVE_STORE__URL_FILE=str(folder / "missing"))
    assert problem.startswith("variable REDRIVE_STORE__URL_FILE: cannot read")
    assert remedy
    problem, _ = only_problem(REDRIVE_STORE__URL_FILE="x", REDRIVE_STORE__URL="sqlite:///x.db")
    assert "REDRIVE_STORE__URL is set as well" in problem


def test_every_secret_can_come_from_a_file() -> None:
    assert {key for key, field, _ in leaves(Settings()) if SECRET_FIELD in field.metadata} == SECRETS
    assert all(isinstance(value, SecretUrl | None) for key, _, value in leaves(Settings()) if key in SECRETS)


# The example


def test_every_default_in_the_example_is_the_codes_default() -> None:
    assert load(config=EXAMPLE, environ={}).settings == Settings()


def test_the_example_names_every_setting() -> None:
    written = Layer(tomllib.loads(EXAMPLE.read_text()), lambda _key: "")
    missing = [key for key, _, _ in leaves(Settings()) if not written.holds(key)]
    assert not missing


def test_every_setting_of_the_example_is_explained_beside_or_above_it() -> None:
    lines = EXAMPLE.read_text().split("[queues.orders]")[0].splitlines()
    bare = [line for above, line in pairwise(lines) if " = " in line and "#" not in line + above]
    assert not bare


@pytest.mark.parametrize(
    ("profile", "s2"),
    [
        (
            "development",
            {
                "MaxRetryAttempts": 3,
                "InitialRetryDelaySeconds": 2,
                "BackoffMultiplier": 2.0,
                "MaxRetryDelaySeconds": 60,
                "DeadLetterTtlHours": 24,
                "EnableDetailedLogging": True,
                "EnableAdminNotifications": False,
            },
        ),
        (
            "production",
            {
                "MaxRetryAttempts": 5,
                "InitialRetryDelaySeconds": 5,
                "BackoffMultiplier": 2.0,
                "MaxRetryDelaySeconds": 300,
                "DeadLetterTtlHours": 72,
                "EnableDetailedLogging": False,
                "EnableAdminNotifications": True,
            },
        ),
    ],
)
def test_the_two_profiles_of_the_example_are_s2s(profile: str, s2: dict[str, Any]) -> None:
    settings = load(config=EXAMPLE, profile=profile, environ={}).settings
    expire_after = settings.dead_letters.expire_after
    assert expire_after is not None
    assert {
        "MaxRetryAttempts": settings.retry.attempts,
        "InitialRetryDelaySeconds": settings.retry.initial_delay,
        "BackoffMultiplier": settings.retry.factor,
        "MaxRetryDelaySeconds": settings.retry.max_delay,
        "DeadLetterTtlHours": expire_after / S2_HOURS,
        "EnableDetailedLogging": settings.log.level == "debug",
        "EnableAdminNotifications": settings.dead_letters.notify_critical,
    } == s2
    assert settings.app.environment == profile
    for name in s2:
        assert name in EXAMPLE.read_text()


def test_what_is_shown_can_be_read_back() -> None:
    settings = load(config=EXAMPLE, profile="production", environ={}).settings
    again: dict[str, Any] = {}
    for key, field, value in leaves(settings):
        section = again
        for part in key[:-1]:
            section = section.setdefault(part, {})
        section[key[-1]] = text_of(field, value)
    assert Settings.model_validate(again) == settings


def test_a_duration_is_shown_exactly() -> None:
    field = field_at(("retry", "initial_delay"))
    assert field is not None
    assert [text_of(field, value) for value in (5.0, 90.0, 0.25, 3725.0)] == ["5s", "1m30s", "250ms", "3725s"]

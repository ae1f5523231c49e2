"""S1's schema and S1's SQL, as its decision record has them: what we measure against."""

from __future__ import annotations

from typing import Any

from bench.corpus import Letter

TABLE = "dlq_events"

VIEW = "redrive.dlq_events"
"""Our view of letters as S1's table. Its usual name is that of the table, which stands beside it here."""

DEFINITION = """
CREATE TABLE public.dlq_events (
    id BIGSERIAL PRIMARY KEY,
    event_id VARCHAR(50) NOT NULL,
    event_type VARCHAR(50) NOT NULL,
    source_table VARCHAR(50),
    source_id VARCHAR(50),
    event_payload JSONB NOT NULL,
    error_message TEXT NOT NULL,
    stack_trace TEXT,
    retry_count INTEGER DEFAULT 0,
    max_retries INTEGER DEFAULT 3,
    status VARCHAR(20) DEFAULT 'PENDING',
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    last_retry_at TIMESTAMP,
    resolved_at TIMESTAMP,
    resolved_by VARCHAR(50),
    kafka_offset BIGINT,
    kafka_partition INTEGER,
    kafka_topic VARCHAR(100),
    correlation_id UUID
);
CREATE INDEX idx_dlq_status ON public.dlq_events(status);
CREATE INDEX idx_dlq_created_at ON public.dlq_events(created_at);
CREATE INDEX idx_dlq_source_id ON public.dlq_events(source_id);
CREATE INDEX idx_dlq_event_type ON public.dlq_events(event_type);
"""

PENDING = """
SELECT
id,
event_id,
source_id,
error_message,
created_at
FROM public.dlq_events
WHERE status = 'PENDING'
ORDER BY created_at DESC
"""

TOP_ERRORS = """
SELECT
error_message,
COUNT(*) as occurrences
FROM public.dlq_events
WHERE status = 'PENDING'
GROUP BY error_message
ORDER BY occurrences DESC
LIMIT 10
"""

PER_HOUR = """
SELECT
DATE_TRUNC('hour', created_at) as hour,
COUNT(*) as error_count
FROM public.dlq_events
WHERE created_at > CURRENT_DATE - INTERVAL '7 days'
GROUP BY hour
ORDER BY hour
"""

BY_TYPE = """
SELECT
event_type,
COUNT(*) as total,
SUM(CASE WHEN status = 'PENDING' THEN 1 ELSE 0 END) as pending,
SUM(CASE WHEN status = 'RESOLVED' THEN 1 ELSE 0 END) as resolved
FROM public.dlq_events
GROUP BY event_type
"""

TIME_TO_RESOLVE = """
SELECT
AVG(EXTRACT(EPOCH FROM (resolved_at - created_at)) / 3600) as avg_hours_to_resolve
FROM public.dlq_events
WHERE status = 'RESOLVED'
AND resolved_at IS NOT NULL
"""

BY_STATUS = "SELECT status, count(*) FROM public.dlq_events GROUP BY status"
"""Not among S1's queries, but what its metric `dlq_events_total{status}` needs."""

COLUMNS = (
    "event_id",
    "event_type",
    "source_table",
    "source_id",
    "event_payload",
    "error_message",
    "stack_trace",
    "retry_count",
    "status",
    "created_at",
    "resolved_at",
    "resolved_by",
    "kafka_offset",
    "kafka_partition",
    "kafka_topic",
    "correlation_id",
)

COPIED: dict[str, Any] = {"schema_name": "public", "columns": COLUMNS}
"""What asyncpg is told besides the table's name."""

INSERT = (
    f"INSERT INTO public.{TABLE} ({', '.join(COLUMNS)})"  # noqa: S608  names of ours
    f" VALUES ({', '.join(f'${place}' for place in range(1, len(COLUMNS) + 1))})"
)


def on_view(sql: str) -> str:
    return sql.replace(f"public.{TABLE}", VIEW)


def row(letter: Letter) -> tuple[Any, ...]:
    """The letter as S1's code would have stored it. Times are UTC without a zone, as its columns are."""
    entry, cause = letter.entry, letter.cause
    assert entry.message.body is not None
    resolved_at = letter.settled_at if letter.status == "RESOLVED" else None
    return (
        entry.message.id,
        letter.event_type,
        cause.queue.rpartition("-")[0] or cause.queue,
        letter.customer_id,
        entry.message.body.decode(),
        entry.failures[-1].text,
        letter.trace,
        len(entry.failures) - 1,
        letter.status,
        entry.at.replace(tzinfo=None),
        None if resolved_at is None else resolved_at.replace(tzinfo=None),
        None if resolved_at is None else "operator",
        letter.number,
        letter.number % 12,
        cause.queue,
        letter.correlation_id,
    )

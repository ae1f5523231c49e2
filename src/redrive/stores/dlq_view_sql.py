"""What S1's table as a view consists of: four functions, the view, and a trigger that makes it read-only.

Columns that cost something, the payload, the stack trace and the place in Kafka, are read only where they are
selected.
"""

from __future__ import annotations

from redrive.dead_letter import MAX_GENERATIONS, Status
from redrive.failure import LINKS
from redrive.kafka_origin import MAGIC
from redrive.stores.postgres_options import quoted

_LARGEST = 2**31 - 1

# What JSON text may hold and PostgreSQL's text may not: NUL, shown as its symbol. An escaped backslash before
# "u0000" makes it five ordinary characters.
_WITHOUT_NUL = r"""regexp_replace({}, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u2400', 'g')"""

_PAYLOAD = """
CREATE OR REPLACE FUNCTION {schema}.dlq_payload(body bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
DECLARE
    whole jsonb;
BEGIN
    whole := convert_from(body, 'UTF8')::jsonb;
    -- An envelope of ours carries the event in its data; redrive.message says what one is.
    IF jsonb_typeof(whole) = 'object' AND whole ?& ARRAY['data', 'metadata', 'error']
        AND jsonb_typeof(whole -> 'message_id') = 'string' AND jsonb_typeof(whole -> 'timestamp') = 'string'
        AND jsonb_typeof(whole -> 'version') = 'string' AND jsonb_typeof(whole -> 'source') = 'string'
        AND jsonb_typeof(whole -> 'queue') = 'string' AND jsonb_typeof(whole -> 'retry_count') = 'number'
    THEN
        RETURN whole -> 'data';
    END IF;
    RETURN whole;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;  -- no JSON, or JSON that jsonb cannot hold
END $$
"""

_STACK_TRACE = """
CREATE OR REPLACE FUNCTION {schema}.dlq_stack_trace(told bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
DECLARE
    failure json;
    raised json;
    frame json;
    lines text[] := ARRAY[]::text[];
BEGIN
    failure := {told}::json;
    FOR raised IN SELECT json_array_elements(failure -> 'chain') LOOP
        IF json_array_length(raised -> 2) > 0 THEN
            lines := array_append(lines, 'Traceback (most recent call last):');
        END IF;
        FOR frame IN SELECT json_array_elements(raised -> 2) LOOP
            lines := array_append(
                lines, format('  File "%s", line %s, in %s', frame ->> 0, frame ->> 1, frame ->> 2));
            IF frame ->> 3 <> '' THEN
                lines := array_append(lines, '    ' || (frame ->> 3));
            END IF;
        END LOOP;
        lines := array_append(lines, concat_ws(': ', raised ->> 0, nullif(raised ->> 1, '')));
        lines := array_append(lines, CASE raised ->> 3 {links} END);
    END LOOP;
    RETURN array_to_string(lines, chr(10));  -- leaves out what is NULL
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;  -- written by a version that kept it in another form
END $$
"""

# Of kafka_origin.Origin, an array of MessagePack behind MAGIC: its element of that number, topic, partition or
# offset. Whatever the bytes are, there is an answer, and it can be cast.
_KAFKA = """
CREATE OR REPLACE FUNCTION {schema}.dlq_kafka(properties bytea, wanted integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
DECLARE
    place integer := {magic_length} + 1;
    head integer;
    size integer;
    raw bytea;
    number bigint;
BEGIN
    IF substring(properties FROM 1 FOR {magic_length}) <> '\\x{magic}'::bytea THEN
        RETURN NULL;
    END IF;
    FOR element IN 0..wanted LOOP
        head := get_byte(properties, place);
        place := place + 1;
        size := CASE WHEN head < 128 THEN 0  -- the number itself
            WHEN head BETWEEN 160 AND 191 THEN head - 160  -- a short text
            WHEN head BETWEEN 204 AND 207 THEN 1 << (head - 204)  -- a longer number
            WHEN head = 217 THEN get_byte(properties, place) END;  -- a longer text, its length in one byte
        place := place + (head = 217)::integer;
        raw := substring(properties FROM place + 1 FOR size);
        place := place + size;
    END LOOP;
    IF wanted = 0 THEN
        RETURN CASE WHEN head BETWEEN 160 AND 191 OR head = 217 THEN convert_from(raw, 'UTF8') END;
    END IF;
    number := CASE WHEN head < 128 THEN head WHEN head BETWEEN 204 AND 207
        THEN ('x' || lpad(encode(raw, 'hex'), 16, '0'))::bit(64)::bigint END;
    RETURN CASE WHEN number >= 0 AND (wanted > 1 OR number <= {largest}) THEN number END;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;  -- it ends too early, or is no text
END $$
"""

_REFUSAL = """
CREATE OR REPLACE FUNCTION {schema}.dlq_read_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is read-only: it shows the dead letters of Redrive', TG_TABLE_NAME USING
        ERRCODE = 'object_not_in_prerequisite_state',
        HINT = 'Use redrive retry, resolve, discard, edit, purge, or redrive retention run.';
END $$
"""

_VIEW = """
CREATE OR REPLACE VIEW {view} AS SELECT
    letter.event_number AS id,
    letter.message_id AS event_id,
    coalesce(letter.event_type, letter.queue) AS event_type,
    letter.source AS source_table,
    letter.source_id,
    (SELECT {schema}.dlq_payload(revision.body) FROM {schema}.revisions AS revision
        WHERE revision.letter_id = letter.id AND revision.number = letter.revision) AS event_payload,
    CASE WHEN letter."text" = '' THEN letter."type" ELSE letter."text" END AS error_message,
    (SELECT {schema}.dlq_stack_trace(failure.told) FROM {schema}.failures AS failure
        WHERE failure.letter_id = letter.id
        ORDER BY failure.generation DESC, failure.attempt DESC LIMIT 1) AS stack_trace,
    least(letter.attempts, {largest})::integer AS retry_count,
    {most}::integer AS max_retries,
    letter.status,
    {created_at} AS created_at,
    CASE WHEN letter.attempts > 1 THEN {last_attempt_at} END AS last_retry_at,
    CASE WHEN letter.status = '{resolved}' THEN {changed_at} END AS resolved_at,
    CASE WHEN letter.status = '{resolved}' THEN (
        SELECT line."by" FROM {schema}.audit AS line
        WHERE line.letter_id = letter.id AND line."after" = '{resolved}' ORDER BY line.id DESC LIMIT 1
    ) END AS resolved_by,
    (SELECT {schema}.dlq_kafka(revision.properties, 2)::bigint FROM {schema}.revisions AS revision
        WHERE revision.letter_id = letter.id AND revision.number = 0) AS kafka_offset,
    (SELECT {schema}.dlq_kafka(revision.properties, 1)::integer FROM {schema}.revisions AS revision
        WHERE revision.letter_id = letter.id AND revision.number = 0) AS kafka_partition,
    (SELECT {schema}.dlq_kafka(revision.properties, 0) FROM {schema}.revisions AS revision
        WHERE revision.letter_id = letter.id AND revision.number = 0) AS kafka_topic,
    letter.correlation_id
FROM {schema}.letters AS letter
"""

_TRIGGER = """
CREATE OR REPLACE TRIGGER dlq_read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON {view}
FOR EACH ROW EXECUTE FUNCTION {schema}.dlq_read_only()
"""


def statements(schema: str, view: str) -> list[str]:
    """Those that make the view of the letters in this schema, one after the other; each may be repeated."""
    told = _WITHOUT_NUL.format("convert_from(told, 'UTF8')")
    moments = {name: _moment(f"letter.{name}") for name in ("created_at", "last_attempt_at", "changed_at")}
    values = {
        "schema": quoted(schema),
        "view": view,
        "told": told,
        "links": " ".join(f"WHEN '{link}' THEN '{line}'" for link, line in LINKS.items()),
        "largest": _LARGEST,
        "most": MAX_GENERATIONS,
        "resolved": str(Status.RESOLVED),
        "magic": MAGIC.hex(),
        "magic_length": len(MAGIC),
        **moments,
    }
    parts = (_PAYLOAD, _STACK_TRACE, _KAFKA, _REFUSAL, _VIEW, _TRIGGER)
    return [each.strip().format(**values) for each in parts]


def _moment(microseconds: str) -> str:
    """In the session's time zone and without it, like S1's own `TIMESTAMP DEFAULT CURRENT_TIMESTAMP`."""
    return f"('epoch'::timestamptz + {microseconds} * interval '1 microsecond')::timestamp"

-- The dead letters of kafka_employees.py, in the layout of the service's own table: psql esocial -f kafka_employees_queries.sql

-- 1. Eventos pendentes na DLQ
SELECT
id,
event_id,
source_id,
error_message,
created_at
FROM public.dlq_events
WHERE status = 'PENDING'
ORDER BY created_at DESC;

-- 2. Top 10 erros mais comuns
SELECT
error_message,
COUNT(*) as occurrences
FROM public.dlq_events
WHERE status = 'PENDING'
GROUP BY error_message
ORDER BY occurrences DESC
LIMIT 10;

-- 3. Taxa de erro por hora
SELECT
DATE_TRUNC('hour', created_at) as hour,
COUNT(*) as error_count
FROM public.dlq_events
WHERE created_at > CURRENT_DATE - INTERVAL '7 days'
GROUP BY hour
ORDER BY hour;

-- 4. Eventos por tipo
SELECT
event_type,
COUNT(*) as total,
SUM(CASE WHEN status = 'PENDING' THEN 1 ELSE 0 END) as pending,
SUM(CASE WHEN status = 'RESOLVED' THEN 1 ELSE 0 END) as resolved
FROM public.dlq_events
GROUP BY event_type;

-- 5. SLA de resolução (tempo médio até resolver)
SELECT
AVG(EXTRACT(EPOCH FROM (resolved_at - created_at)) / 3600) as avg_hours_to_resolve
FROM public.dlq_events
WHERE status = 'RESOLVED'
AND resolved_at IS NOT NULL;

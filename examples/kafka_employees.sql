-- What kafka_employees.py writes to, beside Redrive's own tables: psql esocial -f kafka_employees.sql

CREATE TABLE IF NOT EXISTS public.employees (
    id text PRIMARY KEY,
    cpf text NOT NULL,
    name text NOT NULL,
    hired_on date NOT NULL,
    dismissed_on date
);

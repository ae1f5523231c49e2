"""S0, section "Como Testar": its seven tests and its example, under their own names, on the real worker."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from redrive import App, Permanent, Retry, linear
from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery
from redrive.testing import bench_for


class RetryableException(Exception):
    """S0's: worth another attempt."""


class NonRetryableException(Exception):
    """S0's: another attempt cannot help."""


BACKOFF = linear("10ms")


def processor(attempts: int) -> App:
    """S0's RetriableProcessor: so many attempts, the backoff times the number of the attempt."""
    return App("s0", retry=Retry(attempts, BACKOFF), kinds={NonRetryableException: "permanent"})


async def test_s0_1_deve_enviar_para_dlq_apos_max_tentativas() -> None:
    app, calls = processor(3), []

    @app.handler("pedidos")
    def process(pedido: dict[str, str]) -> None:
        calls.append(pedido)
        raise RuntimeError("Erro persistente")

    async with bench_for(app) as bench:
        message = await bench.send("pedidos", {"payload": "payload"})
        await bench.run_until_quiet()

        assert calls == [{"payload": "payload"}] * 3
        letter = bench.assert_dead_lettered("pedidos", count=1)
        assert letter.message.id == message.id
        assert letter.attempts == 3


async def test_s0_2_sucesso_nao_deve_enviar_para_dlq() -> None:
    app, calls = processor(3), []

    @app.handler("pedidos")
    def process(pedido: dict[str, str]) -> None:
        calls.append(pedido)

    async with bench_for(app) as bench:
        await bench.send("pedidos", {"payload": "ok"})
        await bench.run_until_quiet()

        assert len(calls) == 1
        assert bench.letters == ()


async def test_s0_3_non_retryable_exception_deve_ir_direto_para_dlq() -> None:
    app, calls = processor(3), []

    @app.handler("pedidos")
    def process(pedido: dict[str, str]) -> None:
        calls.append(pedido)
        raise NonRetryableException("Schema inválido")

    async with bench_for(app) as bench:
        await bench.send("pedidos", {"payload": "invalid"})
        await bench.run_until_quiet()

        assert len(calls) == 1
        letter = bench.assert_dead_lettered("pedidos", count=1)
        assert "Schema inválido" in letter.text
        assert letter.attempts == 1


async def test_s0_4_deve_reprocessar_mensagem_da_dlq() -> None:
    app, calls = processor(1), []

    @app.handler("pedidos")
    def process(pedido: dict[str, str]) -> None:
        calls.append(pedido)
        if len(calls) == 1:
            raise RuntimeError("Erro")

    async with bench_for(app) as bench:
        await bench.send("pedidos", {"payload": "payload"})
        await bench.run_until_quiet()
        letter = bench.assert_dead_lettered("pedidos", count=1)

        await bench.redrive(letter)
        await bench.run_until_quiet()

        assert len(calls) == 2
        bench.assert_nothing_dead_lettered()
        [resolved] = bench.letters  # S0 forgets it before it is processed; here its story stays
        assert (resolved.id, resolved.status, resolved.how) == (letter.id, Status.RESOLVED, "confirmed")
        assert await bench.transport.depths() == {}


async def test_s0_5_deve_alertar_quando_dlq_atingir_threshold() -> None:
    app = processor(1)

    @app.handler("pedidos")
    def process(pedido: dict[str, int]) -> None:
        raise Permanent(f"Erro {pedido['number']}")

    async with bench_for(app) as bench:
        for number in range(10):
            await bench.send("pedidos", {"number": number})
        await bench.run_until_quiet()

        verdict = await bench.desk.check(max_pending=5)

        assert verdict.alert
        assert verdict.line.startswith("ALERT: 10 pending dead letters (limit 5)")
        reasons = (await bench.desk.statistics()).reasons
        assert reasons == [("Permanent: Erro <n>", 10)]


async def test_s0_6_deve_identificar_mensagens_antigas_na_dlq() -> None:
    app = processor(1)

    @app.handler("pedidos")
    def process(pedido: dict[str, str]) -> None:
        raise Permanent(f"Erro {pedido['age']}")

    async with bench_for(app) as bench:
        old = await bench.send("pedidos", {"age": "antigo"})
        await bench.run_until_quiet()
        bench.clock.advance(2 * 86400)
        await bench.send("pedidos", {"age": "recente"})
        await bench.run_until_quiet()

        statistics = await bench.desk.statistics(older_than="1d")
        day_ago = bench.clock.now() - timedelta(days=1)
        [found] = await bench.desk.letters(LetterQuery(created_before=day_ago))

        assert statistics.older == 1
        assert found.message.id == old.id
        assert (await bench.desk.check(max_age="1d")).alert


async def test_s0_7_deve_armazenar_stack_traces_na_dlq() -> None:
    app = processor(2)

    @app.handler("pedidos")
    def process(pedido: dict[str, str]) -> None:
        raise RuntimeError(f"Erro específico: {pedido['id']}")

    async with bench_for(app) as bench:
        await bench.send("pedidos", {"id": "msg5"})
        await bench.run_until_quiet()

        letter = bench.assert_dead_lettered("pedidos", count=1)
        traces = [failure.trace for failure in letter.failures]
        assert len(traces) == 2
        assert "Erro específico: msg5" in traces[0]
        assert "Traceback (most recent call last):" in traces[0]
        assert 'raise RuntimeError(f"Erro específico' in traces[1]


async def test_s0_example_of_use_ok_is_processed_invalid_and_retry_are_set_apart() -> None:
    app, calls = processor(3), Counter[str]()

    @app.handler("pedidos")
    def process(pedido: dict[str, str]) -> None:
        calls[pedido["payload"]] += 1
        if "INVALID" in pedido["payload"]:
            raise NonRetryableException("Schema inválido")
        if "RETRY" in pedido["payload"]:
            raise RetryableException("Serviço indisponível")

    async with bench_for(app) as bench:
        for payload in ("OK", "INVALID", "RETRY"):
            await bench.send("pedidos", {"payload": payload})
        await bench.run_until_quiet()

        assert calls == {"OK": 1, "INVALID": 1, "RETRY": 3}
        bench.assert_dead_lettered("pedidos", type="NonRetryableException", attempts=1, count=1)
        retried = bench.assert_dead_lettered("pedidos", type="RetryableException", attempts=3, count=1)
        assert len(bench.letters) == 2
        first, second, third = (failure.at for failure in retried.failures)
        assert (second - first).total_seconds() == pytest.approx(0.01)
        assert (third - second).total_seconds() == pytest.approx(0.02)
        assert not (await bench.desk.check(max_pending=5)).alert

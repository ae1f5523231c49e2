"""A handler and everything said about it when it was registered."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from redrive.binding import behind, bind, payload_type
from redrive.errors import ConfigurationError, Permanent

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from redrive.classification import Kinds
    from redrive.dead_letter import DeadLetter
    from redrive.inbox import Inbox
    from redrive.message import Message
    from redrive.policy import Retry
    from redrive.transports import Delivery

DeadLetterHook = Callable[["DeadLetter"], object]
CallNext = Callable[[], Awaitable[None]]
Middleware = Callable[["Delivery", CallNext], Awaitable[None]]
H = TypeVar("H", bound=DeadLetterHook)


class NoHandler(Permanent):
    """A message of a queue that nothing handles."""


class Handler:
    """Made by `App.handler` and `App.register`. Calling it calls the function behind it, for tests."""

    def __init__(
        self,
        queue: str,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        retry: Retry | None = None,
        kinds: Kinds | None = None,
        timeout: float | None = None,
        concurrency: int | None = None,
        inbox: Inbox | None = None,
        hook: DeadLetterHook | None = None,
        attempts: int | None = None,
    ) -> None:
        if concurrency is not None and concurrency < 1:
            raise ConfigurationError(
                f"the handler for {queue!r} has concurrency={concurrency}: it would never run",
                remedy="use 1 or more",
            )
        self.queue = queue
        self.name = name or name_of(function)
        self.function = function
        self.retry = retry
        self.kinds = kinds
        self.timeout = timeout
        self.concurrency = concurrency
        self.inbox = inbox
        self.hook = hook
        self.attempts = attempts
        """S3's `max_retries`: how often, where `retry` does not say it; when is for app and settings to say."""
        transaction = None if inbox is None else inbox.provides
        self.payload_type = payload_type(function, transaction=transaction)
        self.is_async = is_async(function)
        self._bind = bind(function, transaction=transaction)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def on_dead_letter(self, hook: H) -> H:
        """Decorator for S3's hook: called with the letter once it is durable. Best effort, at most once."""
        self.hook = hook
        return hook

    def run(self, message: Message, executor: Executor) -> Awaitable[object]:
        """One attempt. With an inbox, the effect happens once per message id, however often this is called."""
        if self.inbox is None:
            return self._invoke(self._bind(message, None), executor)
        return self._run_once(self.inbox, message, executor)

    async def _run_once(self, inbox: Inbox, message: Message, executor: Executor) -> None:
        async with inbox.once(message.id, self.name) as transaction:
            if transaction is not None:
                await self._invoke(self._bind(message, transaction), executor)

    def _invoke(self, arguments: tuple[Any, ...], executor: Executor) -> Awaitable[object]:
        if self.is_async:  # without a coroutine of our own around it: that costs, for every message
            awaited: Awaitable[object] = self.function(*arguments)
            return awaited
        return self._invoke_in_thread(arguments, executor)

    async def _invoke_in_thread(self, arguments: tuple[Any, ...], executor: Executor) -> None:
        result = await in_thread(executor, self.function, *arguments)
        if inspect.isawaitable(result):  # a plain function around an async one, as many decorators make
            await result


async def in_thread(executor: Executor, function: Callable[..., Any], *arguments: Any) -> Any:
    """A plain function in a thread, with the caller's context variables."""
    call = functools.partial(contextvars.copy_context().run, _call, function, *arguments)
    result, error = await asyncio.get_running_loop().run_in_executor(executor, call)
    if error is None:
        return result
    try:
        raise error
    finally:
        del error  # its frames lead back here


def _call(function: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """An exception comes back as a value: a future would put a new one without frames in the place of a
    TimeoutError, and with a StopIteration it would never be done.
    """
    try:
        return function(*arguments), None
    except BaseException as error:  # noqa: BLE001  raised again where it is awaited
        return None, error


def name_of(function: Callable[..., Any]) -> str:
    if isinstance(function, functools.partial):
        function = behind(function)
    return str(getattr(function, "__qualname__", type(function).__name__))


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  the method itself is wanted, not the answer
    )


def from_class(queue: str, handler: Any) -> tuple[Callable[..., Any], DeadLetterHook | None, int | None, str]:
    """S3's class handlers: `process`, and if they are there `on_dead_letter` and `max_retries`."""
    try:
        instance = handler() if inspect.isclass(handler) else handler
    except TypeError as error:
        raise ConfigurationError(
            f"the handler {handler.__qualname__} for {queue!r} cannot be made: {error}",
            remedy="register an instance instead of the class",
        ) from None
    process = getattr(instance, "process", None)
    if not callable(process):
        raise ConfigurationError(
            f"the handler {type(instance).__qualname__} for {queue!r} has no method 'process'",
            remedy="give it one, or use @app.handler on a function",
        )
    hook = getattr(instance, "on_dead_letter", None)
    retries = getattr(instance, "max_retries", None)
    return process, hook, retries, type(instance).__qualname__


def around(middleware: Sequence[Middleware], delivery: Delivery, call: CallNext) -> CallNext:
    """The call with the middleware around it, the first registered outermost."""
    for each in reversed(middleware):
        call = functools.partial(each, delivery, call)
    return call

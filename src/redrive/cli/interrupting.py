"""Ctrl-C while somebody is asked, or has an editor open.

Commands run inside an event loop, which answers Ctrl-C by cancelling its task at the next pause. A question makes
no pause: the first Ctrl-C would be swallowed, and an answer typed after it would still count.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends what is inside at once."""
    with _answered_by(signal.default_int_handler):
        yield


@contextmanager
def left_to_the_editor() -> Iterator[None]:
    """Ctrl-C is the editor's affair: ours would throw the edited text away."""
    with _answered_by(lambda *_: None):  # a function, not SIG_IGN, which the editor would inherit
        yield


@contextmanager
def _answered_by(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

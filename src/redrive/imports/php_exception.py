r"""The text of a PHP exception, as Laravel keeps it, read as a chain of what was raised.

    App\Exceptions\BankDown: no answer in /srv/shop/app/Bank.php:41
    Stack trace:
    #0 /srv/shop/app/Jobs/Charge.php(17): App\Bank->charge(Object(App\Order))
    #1 {main}

    Next RuntimeException: could not charge in /srv/shop/app/Jobs/Charge.php:19
    ...

PHP tells the cause first, as we do, and the innermost frame first, as we do not. The arguments of calls are left
out: they are data. Whatever the text is, there is an answer.
"""

from __future__ import annotations

from redrive.failure import MAX_CHAIN, MAX_FRAMES, TEXT_BUDGET, Frame, Raised
from redrive.message import cut, printable

_LARGEST_READ = 256 * 1024
_TRACE = "\nStack trace:\n"
_NEXT = "\n\nNext "
_TYPE_BUDGET = 256
_LINE_BUDGET = 1024
_LARGEST_LINE = 2**31 - 1


def read_exception(text: str) -> tuple[Raised, ...]:
    """Root cause first. At least one."""
    parts = printable(text)[:_LARGEST_READ].replace("\r\n", "\n").strip().split(_NEXT)[-MAX_CHAIN:]
    chain = [_raised(part) for part in parts]
    linked = [Raised(each.type, each.text, each.frames, "cause") for each in chain[:-1]]
    return (*linked, chain[-1])


def _raised(part: str) -> Raised:
    head, _, trace = part.partition(_TRACE)
    type_, text = _type_and_text(head)
    text, file, line = _place(text)
    frames = _frames(file, line, trace.split("\n")) if file or trace else ()
    return Raised(type_, cut(text, TEXT_BUDGET), frames)


def _type_and_text(head: str) -> tuple[str, str]:
    name, separator, text = head.partition(":")
    if separator and _is_class(name):
        return name, text.strip()
    bare = head.partition(" in ")[0].strip()
    return (bare, head.removeprefix(bare)) if _is_class(bare) else ("Exception", head)


def _is_class(name: str) -> bool:
    return 0 < len(name) <= _TYPE_BUDGET and name.replace("\\", "").replace("_", "").isalnum()


def _place(text: str) -> tuple[str, str, int]:
    """The text without ` in FILE:LINE` at its end, and these two."""
    before, separator, place = text.rpartition(" in ")
    file, colon, number = place.rpartition(":")
    if not separator and text.startswith("in "):
        file, colon, number = text.removeprefix("in ").rpartition(":")
        before = ""
    elif not separator:
        return text, "", 0
    if not colon or not number.isascii() or not number.isdecimal() or "\n" in file:
        return text, "", 0
    return before.strip(), file.strip(), _line(number)


def _frames(file: str, line: int, trace: list[str]) -> tuple[Frame, ...]:
    """A line of the trace says which function was called where: it names the function of the place before it."""
    called = [_call(each) for each in trace if each.startswith("#")]
    places = [(file, line), *((file, line) for file, line, _ in called)]
    functions = [*(function for _, _, function in called), "{main}"]
    frames = [_frame(*place, function) for place, function in zip(places, functions, strict=True) if place[0]]
    return tuple(reversed(frames[:MAX_FRAMES]))


def _call(line: str) -> tuple[str, int, str]:
    """`#0 FILE(LINE): FUNCTION(...)`, `#1 [internal function]: FUNCTION(...)` or `#2 {main}`."""
    place, _, call = line.partition(" ")[2][:_LINE_BUDGET].partition(": ")
    file, bracket, number = place.rpartition("(")
    function = call.partition("(")[0].strip()
    digits = number.removesuffix(")")
    if bracket and digits.isascii() and digits.isdecimal():
        return file, _line(digits), function
    return ("" if place == "{main}" else place), 0, function or place


def _frame(file: str, line: int, function: str) -> Frame:
    return Frame(file, line, function, "", own="/vendor/" not in file and not file.startswith("["))


def _line(digits: str) -> int:
    return min(int(digits[:10]), _LARGEST_LINE)

r"""A filter's text, character by character: quotes, escapes, and where everything stands.

One rule for escapes, inside quotes and outside: a backslash takes the meaning from `"`, `\`, `*` and `,` behind
it, and is a plain backslash in front of anything else, so that `App\Jobs\Charge` can be written as it is.
"""

from __future__ import annotations

from typing import NamedTuple

from redrive.errors import FilterError
from redrive.search_terms import MAX_VALUE

ESCAPABLE = '"\\*,'


class Value(NamedTuple):
    """One value of a term, or a word or phrase to look for."""

    text: str
    begins: bool
    """A `*` outside the quotes ended it."""
    quoted: bool
    column: int


class Scanner:
    """Reads forward from `at`. Every FilterError carries its column, counted from 1."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def column(self) -> int:
        return self.at + 1

    @property
    def next(self) -> str:
        """The next character; nothing at the end."""
        return self.text[self.at : self.at + 1]

    @property
    def at_end_of_term(self) -> bool:
        return not self.next or self.next.isspace()

    def skip_space(self) -> None:
        while self.next.isspace():
            self.at += 1

    def take(self, *candidates: str) -> str:
        """The first of them that stands here, stepped over; nothing if none does."""
        for each in candidates:
            if self.text.startswith(each, self.at):
                self.at += len(each)
                return each
        return ""

    def value(self, ends: str = "") -> Value:
        """A value in quotes or up to white space (or one of `ends`), and whether a `*` stands behind it."""
        start, quoted = self.column, self.next == '"'
        text = self.quoted() if quoted else self._bare(ends)
        begins = bool(self.take("*"))
        if not self.at_end_of_term and self.next not in ends:
            raise self._misplaced(quoted=quoted, starred=begins)
        return Value(bounded(text, start), begins, quoted, start)

    def quoted(self) -> str:
        """What stands between two quotes."""
        opening = self.column
        self.at += 1
        text = self._until('"')
        if not self.take('"'):
            raise FilterError(
                "this quote is never closed", column=opening, remedy=r"close it, or write \" for the character"
            )
        return text

    def _bare(self, ends: str) -> str:
        return self._until('"*' + ends, or_space=True)

    def _until(self, ends: str, *, or_space: bool = False) -> str:
        found: list[str] = []
        while self.next and self.next not in ends and not (or_space and self.next.isspace()):
            if self.next == "\\" and self.text[self.at + 1 : self.at + 2] in tuple(ESCAPABLE):
                self.at += 1
            found.append(self.next)
            self.at += 1
        return "".join(found)

    def _misplaced(self, *, quoted: bool, starred: bool) -> FilterError:
        if starred:
            return FilterError(
                "* stands for any ending, so nothing can follow it",
                column=self.at,
                remedy=r"put it last, or write \* for the character",
            )
        if quoted:
            return FilterError(
                "something follows the closing quote", column=self.column, remedy="put a space between them"
            )
        return FilterError(
            "a quote in the middle of a word",
            column=self.column,
            remedy=r"put the whole value in quotes, or write \" for the character",
        )


def bounded(text: str, column: int) -> str:
    if len(text) > MAX_VALUE:
        raise FilterError(
            f"{len(text):,} characters in one value",
            column=column,
            remedy=f"look for its beginning: at most {MAX_VALUE:,} characters",
        )
    return text

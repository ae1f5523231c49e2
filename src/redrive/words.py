"""What free text is searched by: one way to cut text into words, whatever the database."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 64
"""Characters of a word; the rest of a longer one is left out, in what is searched and in what is searched for."""

LONGEST_PHRASE = 32
"""Words that are looked for next to each other."""

_WORD = re.compile(r"\w+")
_ASCII_WORD = re.compile(r"\w+", re.ASCII)


class _WithoutMarks(dict[int, int | None]):
    """For `str.translate`: accents and other marks go, everything else stays. Remembers what it was asked."""

    def __missing__(self, code: int) -> int | None:
        kept = None if unicodedata.category(chr(code)).startswith("M") else code
        self[code] = kept
        return kept


_without_marks = _WithoutMarks()


def words(text: str) -> list[str]:
    """Letters, digits and underscores that stand together, in order: without accents, capitals and width."""
    if text.isascii():
        found = _ASCII_WORD.findall(text.lower())
    else:
        plain = unicodedata.normalize("NFKD", text).translate(_without_marks)
        # Folding may bring new marks (the Turkish dotted I), and what it gives must not change if folded again.
        folded = unicodedata.normalize("NFKD", plain.casefold()).translate(_without_marks)
        found = _WORD.findall(folded)
    return [word[:LONGEST] for word in found]

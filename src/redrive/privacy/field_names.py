"""Names of fields and headers whose values nobody needs to see: by words in them, however they are spelled."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import re2

from redrive.privacy.detectors import KINDS
from redrive.privacy.escapes import without_json_escapes

if TYPE_CHECKING:
    from collections.abc import Iterable

# Anywhere in a name: `db_password`, `X-Api-Key`, `clientSecret`, `senhaAtual`.
ANYWHERE = (
    *("password", "passwd", "passphrase", "senha", "secret", "segredo", "token", "jwt", "bearer", "cookie"),
    *("authorization", "authentication", "credential", "credencial", "apikey", "accesskey", "privatekey"),
    *("accountkey", "signature", "session", "connectionstring"),
    *("cardnumber", "creditcard", "debitcard", "numerocartao", "securitycode", "socialsecurity", "biometr"),
)
# A word of a name: `cpf_do_cliente`, `CPFNumber`, `cardCvv`.
AS_A_WORD = frozenset({"pwd", "otp", "cvv", "cvc", "ssn", "cpf", "cnpj", "iban", "msisdn"})
# The whole name, or its last words, numbered or not: `home_phone`, `email2`.
AT_THE_END = frozenset(
    {
        *("pin", "pan", "rg", "cnh", "pis"),
        *("passport", "passaporte", "card", "cartao", "cpfcnpj", "taxid", "email", "mail"),
        *("phone", "phonenumber", "telephone", "telefone", "celular", "whatsapp", "fone"),
        *("dob", "birthdate", "birthday", "dateofbirth", "nascimento", "datanascimento", "datadenascimento"),
    }
)
_REMEMBERED = 8192
_LONGEST = 256
"""Bytes of a name that are looked at."""
_MASKS = tuple(f"[{kind}]" for kind in KINDS)
_NUMBER = "0123456789 _-."
_anywhere = re2.compile("|".join(ANYWHERE))
_as_a_word = re2.compile("|".join(AS_A_WORD))


class FieldNames:
    """The words above, and what a team adds: whole names or last words, like those at the end."""

    def __init__(self, extra: Iterable[str] = ()) -> None:
        self._at_the_end = AT_THE_END | {"".join(words_of(name)) for name in extra} - {""}
        self._ends = tuple(self._at_the_end)
        self.is_sensitive = lru_cache(maxsize=_REMEMBERED)(self._is_sensitive)
        self._known: dict[bytes, bool] = {}

    def is_sensitive_key(self, raw: bytes) -> bool:
        """Of a key as JSON writes it."""
        known = self._known.get(raw)
        if known is None:
            name = without_json_escapes(raw).text if b"\\" in raw else raw
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[raw] = self._is_sensitive(name.decode("utf-8", "replace"))
        return known

    def _is_sensitive(self, name: str) -> bool:
        name = _without_masks(name[:_LONGEST]).rstrip(_NUMBER)
        bare = "".join(filter(str.isalnum, name)).casefold()
        if _anywhere.search(bare) is not None:
            return True
        if _as_a_word.search(bare) is not None and not AS_A_WORD.isdisjoint(words_of(name)):
            return True
        return bare.endswith(self._ends) and self._ends_in_one(name)

    def _ends_in_one(self, name: str) -> bool:
        ending = ""
        for word in reversed(words_of(name)):
            ending = word + ending
            if ending in self._at_the_end:
                return True
        return False


def _without_masks(name: str) -> str:
    """So that `[e-mail]`, which stands for a name, is no field of that name."""
    for mask in _MASKS if "[" in name else ():
        name = name.replace(mask, "")
    return name


def words_of(name: str) -> list[str]:
    """`customerCpf`, `CUSTOMER_CPF`, `customer-cpf` are the same words, as are `CPFNumber` and `cpf_number`."""
    words, word = list[str](), ""
    for before, each, after in zip(" " + name, name, name[1:] + " ", strict=False):
        turns = each.isupper() and (before.islower() or (before.isupper() and after.islower()))
        if word and (turns or not each.isalnum()):
            words.append(word.casefold())
            word = ""
        word += each if each.isalnum() else ""
    return [*words, word.casefold()] if word else words

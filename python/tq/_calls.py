"""Calls of functions over relations, written as SQL."""

from __future__ import annotations

import re
from typing import Any, Optional, Union

from ._result import Collected, Result

Relation = Union[str, Result]
"""The name of a table, a SELECT, or an answer of the same session."""


ASKS = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:SELECT|WITH|VALUES|FROM|\()", re.IGNORECASE | re.DOTALL)
"""The beginning of what only asks."""


class Calls:
    """Whoever answers SQL can be asked for what a function computes."""

    def sql(self, text: str, /, **params: Any) -> Result:
        """The answer of SQL."""
        raise NotImplementedError

    def _called(self, name: str, inputs: dict[str, Optional[Relation]], options: dict[str, Any]) -> Result:
        given = [f"{key} => {self._relation(value)}" for key, value in inputs.items() if value is not None]
        given += [f"{key} => {_value(value)}" for key, value in options.items() if value is not None]
        return self.sql(f"SELECT * FROM {name}({', '.join(given)})")

    def _relation(self, given: Relation) -> str:
        if isinstance(given, Result):
            if given.session is not self:
                raise ValueError("an answer of another session is no input: open the traces of both in one")
            if isinstance(given, Collected):
                raise ValueError("rows that are kept are no input, since the question would be asked again: give it, or its SQL")
            if given.relation is None:
                raise ValueError("an answer with parameters, of several statements or of a saved query is no input: give its SQL")
            # A comment may end it.
            return f"({given.relation}\n)"
        if not isinstance(given, str):
            raise TypeError(f"`{type(given).__name__}` is no input: give a SELECT, the name of a table, or what `session.sql(…)` gives")
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", given):
            return f"(SELECT * FROM {given})"
        if not ASKS.match(given):
            raise ValueError(f"`{given[:40]}` is no input: give a SELECT, the name of a table, or what `session.sql(…)` gives")
        # Mistakes are shown in the text that was given.
        return self._relation(self.sql(given))


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    return repr(value)

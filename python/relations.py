"""Writes `tq/_relations.py` from the functions of the engine: `python relations.py` after a new one; a test says when that is due."""

import re
import textwrap
from pathlib import Path

import tq

HEAD = '''"""The functions over relations as methods. Written by `relations.py`."""

from __future__ import annotations

import re
from typing import Any, Optional, Union

from ._result import Result

Relation = Union[str, Result]
"""The name of a table, a SELECT, or an answer of the same session."""


class Relations:
    """What a session can be asked without SQL. Inputs that are left out are those of the whole session."""

    def sql(self, text: str, /, **params: Any) -> Result:
        """The answer of SQL."""
        raise NotImplementedError

    def _called(self, name: str, inputs: dict[str, Optional[Relation]], options: dict[str, Any]) -> Result:
        for value in inputs.values():
            if isinstance(value, Result) and value.session not in (None, self):
                raise ValueError("an answer of another session is no input: open the traces of both in one")
        given = [f"{key} => {_relation(value)}" for key, value in inputs.items() if value is not None]
        given += [f"{key} => {_value(value)}" for key, value in options.items() if value is not None]
        return self.sql(f"SELECT * FROM {name}({', '.join(given)})")
'''

TAIL = '''

def _relation(given: Relation) -> str:
    if isinstance(given, Result):
        if not given.is_relation:
            raise ValueError("an answer with parameters, of several statements or of a saved query is no input: give its SQL")
        # A comment may end it.
        return f"({given.text}\\n)"
    is_name = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", given)
    return f"(SELECT * FROM {given})" if is_name else f"({given})"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    return repr(value)
'''

TYPES = {"BIGINT": "int", "VARCHAR": "str", "BOOLEAN": "bool", "DOUBLE": "float"}


def method(name: str, parameters: list[tuple[str, bool]], syntax: str, description: str) -> str:
    """The method of a function."""
    word = {"from": "from_"}
    inputs = [key for key, is_input in parameters if is_input]
    options = [key for key, is_input in parameters if not is_input]
    wanted = [key for key in inputs if f"[{key}]" not in syntax]
    arguments = [f"{key}: Relation" for key in wanted]
    arguments += [f"{key}: Optional[Relation] = None" for key in inputs if key not in wanted]
    if options:
        arguments.append("*")
    for key in options:
        kind = re.search(rf"\[{key} => (\w+)\]", syntax)
        arguments.append(f"{word.get(key, key)}: Optional[{TYPES[kind.group(1) if kind else 'BIGINT']}] = None")
    passed = ", ".join(f'"{key}": {key}' for key in inputs)
    given = ", ".join(f'"{key}": {word.get(key, key)}' for key in options)
    # The summary, and what the rows are.
    paragraphs = [text for text in description.split("\n\n") if not text.startswith(("Cost", "Source"))]
    text = "\n\n".join(paragraphs).replace("\\", "\\\\").replace('"""', "'''")
    lines = "\n\n".join(
        textwrap.fill(paragraph, 130, break_long_words=False, break_on_hyphens=False, subsequent_indent="        ", initial_indent="        ")
        for paragraph in text.split("\n\n")
    )
    return f'''
    def {name}(self, {", ".join(arguments)}) -> Result:
        """{lines.strip()}
        """
        return self._called("{name}", {{{passed}}}, {{{given}}})
'''


def source() -> str:
    """The module."""
    session = tq.open(Path(__file__).parent.parent / "fixtures/chrome/kineto_tiny.json")._session
    documented = {name: (syntax, description) for name, _, _, syntax, description in session.functions()}
    methods = (method(name, parameters, *documented[name]) for name, parameters in sorted(session.relation_functions()))
    return HEAD + "".join(methods) + TAIL


if __name__ == "__main__":
    (Path(__file__).parent / "tq/_relations.py").write_text(source(), encoding="utf-8")

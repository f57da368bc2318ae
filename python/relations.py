"""Writes `tq/_relations.py` from the functions of the engine: `python relations.py` after a new one; a test says when that is due."""

import re
import textwrap
from pathlib import Path

import tq

HEAD = '''"""The functions over relations as methods. Written by `relations.py`."""

from __future__ import annotations

from typing import Optional

from ._calls import Calls, Relation
from ._result import Result


class Relations(Calls):
    """What a session can be asked without SQL. Inputs that are left out are those of the whole session."""
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
    return HEAD + "".join(methods)


if __name__ == "__main__":
    (Path(__file__).parent / "tq/_relations.py").write_text(source(), encoding="utf-8")

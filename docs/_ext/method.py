"""Directives for the pages of methods, which read the registry and the docstring of the method's file."""

import re
import sys

from docutils import nodes
from docutils.parsers.rst import Directive, directives

from kernling import registry

DEPARTURES = "Departures from the paper"


def _text(words: str) -> list[nodes.Node]:
    """Convert plain text with ``code`` to nodes."""
    parts = re.split(r"``(.+?)``", " ".join(words.split()))
    return [nodes.literal(part, part) if place % 2 else nodes.Text(part) for place, part in enumerate(parts) if part]


def _block(block: str) -> nodes.Node:
    """Convert a block between blank lines: indented lines are a formula, lines with dashes a list."""
    if block.startswith("    "):
        return nodes.literal_block(text="\n".join(line[4:] for line in block.splitlines()), language="none")
    if block.startswith("- "):
        items = re.split(r"^- ", block, flags=re.MULTILINE)[1:]
        return nodes.bullet_list("", *(nodes.list_item("", nodes.paragraph("", "", *_text(item))) for item in items))
    return nodes.paragraph("", "", *_text(block))


class Docstring(Directive):
    """``{docstring} avm``: the description of the method, or only its citation, or its departures from the paper."""

    required_arguments = 1
    option_spec = {"part": lambda value: directives.choice(value, ("citation", "description", "departures"))}

    def run(self):
        entry = registry.find(self.arguments[0])
        module = entry.module
        self.state.document.settings.record_dependencies.add(sys.modules[module.__name__].__file__)
        blocks = re.split(r"\n\n", module.__doc__.strip())[1:]  # the first is its name
        cut = next((place for place, block in enumerate(blocks) if block.startswith(DEPARTURES)), len(blocks))
        part = self.options.get("part")
        chosen = {"citation": blocks[:1], "description": blocks[:cut], "departures": blocks[cut + 1 :], None: blocks}[part]
        return [_block(block) for block in chosen]


def _code_table(titles: list[str], rows: list[list[list[nodes.Node]]]) -> nodes.Node:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in titles), cols=len(titles))

    def line(cells):
        return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))

    group += nodes.thead("", line([[nodes.Text(title)] for title in titles]))
    group += nodes.tbody("", *(line(cells) for cells in rows))
    return nodes.table("", group)


class Baselines(Directive):
    """``{baselines}``: a table of all baselines, from the registry."""

    def run(self):
        rows = []
        for name, entry in registry.METHODS.items():
            if not entry.is_main:
                classes = ", ".join(f":class:`~kernling.baselines.{name}`" for name in entry.estimators)
                links, problems = self.state.inline_text(classes, self.lineno)
                learner = entry.learner()
                rows.append([[nodes.literal(name, name)], _text(learner.citation), [*links, *problems]])
        return [_code_table(["name", "paper", "classes"], rows)]


class Certificates(Directive):
    """``{certificates}``: a table of all numbers in certificates of the main methods, from their learners."""

    def run(self):
        rows = []
        for _name, entry in registry.METHODS.items():
            if entry.is_main:
                for key, meaning in entry.learner().meanings.items():
                    rows.append([_text(entry.learner().title.split(",")[0]), [nodes.literal(key, key)], _text(meaning)])
        return [_code_table(["method", "number", "what it says"], rows)]


def setup(app):
    app.add_directive("docstring", Docstring)
    app.add_directive("baselines", Baselines)
    app.add_directive("certificates", Certificates)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

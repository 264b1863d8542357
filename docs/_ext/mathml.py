"""Formulas as MathML, which browsers render without scripts or network access."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

log = logging.getLogger(__name__)


def _mathml(node, display: str) -> str:
    try:
        return convert(node.astext(), display=display)
    except Exception as error:  # the exceptions of latex2mathml have no common base class
        log.warning("cannot read the formula %s: %r", node.astext(), error, location=node)
        return f"<code>{node.astext()}</code>"


def _inline(self, node):
    self.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _block(self, node):
    self.body.append(f'<div class="math">{_mathml(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

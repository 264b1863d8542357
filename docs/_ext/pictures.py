"""Figures of the gallery in light and dark versions: the background is transparent, dark colours become light."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive, directives

INK = "#cfd0d0"  # on a dark background
ON_DARK = {"#000000": INK, "#0072b2": "#4aa3df"}  # the two colours of our palette that are too dark there
RESOLUTION = 160  # dots per inch


def light_and_dark(block, block_vars, gallery_conf):
    """Scraper for sphinx-gallery: save the figures of a code block, of pyplot or not, in both versions."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    shown = block_vars["example_globals"].setdefault("__shown__", [])
    found = [plt.figure(number) for number in plt.get_fignums()]
    found += [thing for name, thing in block_vars["example_globals"].items() if isinstance(thing, Figure)]
    lines = []
    for figure in dict.fromkeys(found):
        if figure in shown:
            continue
        shown.append(figure)
        path = Path(next(block_vars["image_path_iterator"]))
        save_both(figure, path)
        place = "/" + path.relative_to(gallery_conf["src_dir"]).as_posix()
        lines += [f".. picture:: {place}", f"   :alt: {_alt(figure)}", ""]
    plt.close("all")
    return "\n".join(lines)


def _alt(figure) -> str:
    """Return the alternative text of a figure: its titles and labels."""
    words = [figure.get_suptitle()]
    for axes in figure.axes:
        words += [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()]
    return ", ".join(dict.fromkeys(word.replace("\n", " ") for word in words if word)) or "figure"


def dark_path(path: Path) -> Path:
    """Return the path of the dark version of a figure."""
    return path.with_name(f"{path.stem}_dark{path.suffix}")


def save_both(figure, path: Path) -> None:
    """Save the light version of a figure to this path and the dark version next to it."""
    figure.savefig(path, dpi=RESOLUTION, transparent=True)
    darken(figure)
    figure.savefig(dark_path(path), dpi=RESOLUTION, transparent=True)


def darken(figure) -> None:
    """Replace dark colours by light ones."""
    names = ("color", "edgecolor", "facecolor", "markerfacecolor", "markeredgecolor")
    for axes in figure.axes:
        axes.tick_params(which="both", colors=INK)
    for artist in figure.findobj():
        for get, put in (("get_" + name, "set_" + name) for name in names):
            if hasattr(artist, get) and hasattr(artist, put):
                pale = _pale(getattr(artist, get)())
                if pale is not None:
                    getattr(artist, put)(pale)


def _pale(colour) -> list | tuple | None:
    """Return the colour, or colours, for a dark background; None if unchanged."""
    from matplotlib.colors import is_color_like, to_hex, to_rgba

    if is_color_like(colour):
        new = ON_DARK.get(to_hex(colour))
        return (*to_rgba(new)[:3], to_rgba(colour)[3]) if new else None
    several = [_pale(one) for one in colour]
    if not any(several):
        return None
    return [new or old for new, old in zip(several, colour, strict=True)]


class Picture(Directive):
    """``picture``: an image in a light and a dark version, shown depending on the theme."""

    required_arguments = 1
    option_spec = {"alt": directives.unchanged}

    def run(self):
        path = Path(self.arguments[0])
        alt = self.options.get("alt", "")
        light = nodes.image(uri=path.as_posix(), alt=alt, classes=["only-light", "picture"])
        dark = nodes.image(uri=dark_path(path).as_posix(), alt=alt, classes=["only-dark", "picture"])
        return [light, dark]


def setup(app):
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

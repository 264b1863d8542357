"""Check of the built site: internal links are valid, nothing is loaded from other sites, external links are listed."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.util import logging

log = logging.getLogger(__name__)
FETCHED = {("script", "src"), ("img", "src"), ("source", "srcset"), ("iframe", "src")}
SHEETS = ("stylesheet", "icon", "preload")
LIST = "external-links.txt"


class Page(HTMLParser):
    """The links of a page, the resources it loads, and its anchors."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        for name, value in values.items():
            if (tag, name) in FETCHED or (tag == "link" and name == "href" and values.get("rel") in SHEETS):
                self.fetched.add(value)
            elif name == "href" and tag == "a":
                self.links.add(value)


def check(app, exception):
    """Warn about broken links; with -W, the build then fails."""
    if exception or app.builder.name != "html":
        return
    root = Path(app.outdir)
    pages = {path.resolve(): Page(path) for path in root.rglob("*.html")}
    outer: dict[str, str] = {}
    for path, page in sorted(pages.items()):
        for link in sorted(page.links | page.fetched):
            parts = urlsplit(link)
            if parts.scheme in ("http", "https"):
                outer.setdefault(link, path.relative_to(root.resolve()).as_posix())
                if link in page.fetched:
                    log.warning("%s loads %s: the site must work offline", path.name, link)
            elif not parts.scheme and (parts.path or parts.fragment):
                target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                if not target.is_file():
                    log.warning("%s links to %s, which does not exist", path.name, link)
                elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                    log.warning("%s links to %s, an anchor that does not exist", path.name, link)
    root.joinpath(LIST).write_text("".join(f"{link}  (in {page})\n" for link, page in sorted(outer.items())), encoding="utf-8")


def setup(app):
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

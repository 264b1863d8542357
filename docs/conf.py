"""The documentation: `sphinx-build -W docs build/docs`, with nothing from the network."""

import os
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "agg")
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import kernling

project = "kernling"
author = "the kernling developers"
copyright = "the kernling developers"
release = version = kernling.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "method",
    "pictures",
    "links",
]
exclude_patterns = ["_ext", "examples"]
templates_path = ["_templates"]
default_role = "code"
smartquotes = False  # "auto" must be shown with straight quotes

html_theme = "furo"
html_title = "kernling"
html_static_path = ["_static"]
html_css_files = ["kernling.css"]
html_math_renderer = "mathml"
html_copy_source = False
pygments_style = "tango"
pygments_dark_style = "monokai"

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence", "attrs_block"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "image_scrapers": ("pictures.light_and_dark",),
    "capture_repr": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib",),
    "plot_gallery": "True",
    "parallel": 2,
    "write_computation_times": False,
}


def setup(app):
    def skip(app, what, name, obj, skip, options):
        """Skip set_fit_request and similar methods, which scikit-learn adds to every estimator with links to its own pages."""
        routing = name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request"))
        return True if routing else None

    app.connect("autodoc-skip-member", skip)

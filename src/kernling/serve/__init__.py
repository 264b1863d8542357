"""A service: models that predict and learn over HTTP, lose nothing that they acknowledged, and show themselves on a page."""

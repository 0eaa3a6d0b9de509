"""The addresses of sites that replies and the page show."""

from __future__ import annotations

import pytest

from webordinary.compose.container import site_url
from webordinary.config import Config
from webordinary.jobs.site_files import Stage

OWN = ("pots.example",)


@pytest.mark.parametrize(
    ("settings", "edit", "public"),
    [
        ({"domain": "example.com", "backend": "aws"}, "https://kiln.edit.example.com/", "https://pots.example/"),
        (
            {"domain": "example.com", "backend": "aws", "aws_endpoint": "http://127.0.0.1:4566", "port": 8080},
            "http://edit.kiln.example.com:8080/",
            "http://pots.example:8080/",
        ),
        ({"port": 8080}, "http://edit.kiln.localhost:8080/", "http://pots.example:8080/"),
        (
            {"domain": "example.com", "public_url": "https://page.example.com/"},
            "https://edit.kiln.example.com/",
            "https://pots.example/",
        ),
    ],
)
def test_a_site_is_shown_where_this_backend_shows_it(settings: dict[str, object], edit: str, public: str) -> None:
    """On AWS a wildcard covers one level; domains of customers are recorded once visitors see the site there."""
    config = Config(**settings)  # type: ignore[arg-type]
    assert site_url(config, "kiln", Stage.EDIT, OWN) == edit
    assert site_url(config, "kiln", Stage.PUBLIC, OWN) == public

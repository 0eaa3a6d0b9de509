"""Templates: escaped everywhere, and loud about a value that a view forgot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from webordinary.entrypoints.dashboard.ports import Dashboard

FOLDER = Path(__file__).parent / "templates"


class Templates:
    """Prints views; every template also sees the dashboard's own settings."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def page(
        self, name: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: object
    ) -> HTMLResponse:
        """Print a template with a view's values."""
        html = self._environment.get_template(name).render(values, dashboard=self._dashboard)
        return HTMLResponse(html, status, headers)

"""Who may talk to the page: this machine's browser on this page's own behalf, and nobody's scripts."""

from __future__ import annotations

from starlette.datastructures import Headers

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: that turns the Origin of our own forms into `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


def objection(method: str, headers: Headers) -> str | None:
    """Why a request to the page is refused; None if it may pass."""
    site = headers.get("sec-fetch-site", "")
    if method in SAFE_METHODS:
        foreign = site in ("cross-site", "same-site") and not _is_navigation(headers)
        return "Another site's page may link to this one, but not load it." if foreign else None
    if _is_own(headers.get("origin"), headers):
        return None
    return "Only this page's own forms may change something: the Origin header must name this page."


def _is_own(origin: str | None, headers: Headers) -> bool:
    if origin is None:
        return headers.get("sec-fetch-site") == "same-origin"
    return origin.lower() == f"http://{headers.get('host', '').lower()}"


def _is_navigation(headers: Headers) -> bool:
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"

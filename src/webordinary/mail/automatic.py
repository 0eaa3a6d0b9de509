"""Mail written by machines, which is never answered (RFC 3834), so that no two robots talk forever."""

from __future__ import annotations

from webordinary.mail.headers import Headers

_LIST_FIELDS = ("list-id", "list-unsubscribe", "list-post", "x-mailing-list")
_ROBOT_FIELDS = ("x-autoreply", "x-autorespond", "x-auto-reply-from", "x-failed-recipients")
_BULK = {"bulk", "junk", "list", "auto_reply", "auto-reply"}
_DAEMONS = ("mailer-daemon", "postmaster")


def is_automatic(headers: Headers, sender: str, *, report: bool) -> bool:
    """An auto-reply, a bounce, a receipt or list mail. X-Auto-Response-Suppress alone is none of these."""
    submitted = headers.first("auto-submitted").partition(";")[0].strip().lower()
    return (
        report
        or submitted not in ("", "no")
        or headers.first("return-path").strip() == "<>"
        or headers.first("precedence").strip().lower() in _BULK
        or any(headers.first(field) for field in (*_LIST_FIELDS, *_ROBOT_FIELDS))
        or sender.partition("@")[0].lower() in _DAEMONS
    )

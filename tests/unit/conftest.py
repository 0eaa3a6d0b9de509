"""What all unit tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# An example takes as long as the machine lets it: what would take for ever is ended by the test's own timeout.
settings.register_profile(
    "patient",
    parent=settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")

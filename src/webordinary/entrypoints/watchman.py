"""The watchman: looks for what a person must see, and writes the operator about each of it once."""

from __future__ import annotations

import logging
from collections.abc import Callable

from webordinary.adapters.sqlite.letters import LETTERS
from webordinary.app import upkeep
from webordinary.app.embedded import Embedded
from webordinary.mail.notice import compose_notice
from webordinary.pool.watchdog import PERIOD, Alarm, alarms_of, mails_to_write

_log = logging.getLogger(__name__)
LOOK_SECONDS = 30.0
MAX_LETTERS = 200


class Watchman:
    """Looks when something was given up, and now and then for work that nobody owns."""

    def __init__(self, services: Embedded, wake_outbox: Callable[[], None]) -> None:
        self._services, self._wake_outbox = services, wake_outbox
        self._ear = services.bus.listen(LETTERS)
        self._stopping = False

    def run(self) -> None:
        """Look until stopped."""
        while not self._stopping:
            try:
                upkeep.note_dead_workers(self._services)
                if tell_operator(self._services):
                    self._wake_outbox()
            except Exception:
                _log.exception("nobody looked for alarms; trying again in %.0f s", LOOK_SECONDS)
            self._ear.wait(LOOK_SECONDS)
        self._ear.close()

    def stop(self) -> None:
        """Look no more."""
        self._stopping = True
        self._ear.poke()


def tell_operator(services: Embedded) -> int:
    """Write about what is wrong now and was not told yet; returns how many mails. None without an operator."""
    config, now = services.config, services.clock.now()
    if not config.operator:
        return 0
    wrong = alarms_of(services.alarms.untold_letters(MAX_LETTERS), services.overview.pool(now).queues, now)
    told = services.alarms.told([alarm.name for alarm in wrong])
    untold = [alarm for alarm in wrong if alarm.name not in told]
    mails = mails_to_write(untold, services.alarms.mails_since(now - PERIOD))
    return sum(_tell(services, alarms) for alarms in mails)


def _tell(services: Embedded, alarms: tuple[Alarm, ...]) -> bool:
    config, now = services.config, services.clock.now()
    kind = alarms[0].name if len(alarms) == 1 else f"summary-{alarms[0].name}"
    mail = compose_notice(
        kind,
        [(alarm.what, alarm.command) for alarm in alarms],
        recipient=config.operator,
        mailbox=config.mailbox,
        page=f"http://{config.host}:{config.port}/",
        sent_at=now,
    )
    return services.alarms.tell([alarm.name for alarm in alarms], mail, now)

"""Virtual time."""

from __future__ import annotations

from datetime import timedelta

from webordinary.operations.capacity.simulation import MIDNIGHT, VirtualClock


def never() -> bool:
    return False


def test_what_is_due_happens_in_the_order_of_its_moment() -> None:
    time, heard = VirtualClock(), list[str]()
    time.after(2.0, lambda: heard.append("second"))
    time.after(1.0, lambda: heard.append("first"))
    time.after(2.0, lambda: heard.append("third"))
    time.run(10.0, never)
    assert heard == ["first", "second", "third"]
    assert time.monotonic() == 2.0
    assert time.now() == MIDNIGHT + timedelta(seconds=2)


def test_what_was_called_off_does_not_happen() -> None:
    time, heard = VirtualClock(), list[str]()
    time.after(1.0, lambda: heard.append("never")).call_off()
    time.run(10.0, never)
    assert heard == []


def test_time_ends_where_it_was_told_to_or_when_all_is_done() -> None:
    time, heard = VirtualClock(), list[float]()

    def tick() -> None:
        heard.append(time.monotonic())
        time.after(1.0, tick)

    time.after(0.0, tick)
    time.run(3.0, never)
    assert heard == [0.0, 1.0, 2.0, 3.0]
    time.run(100.0, lambda: len(heard) == 6)
    assert heard[-1] == 5.0


def test_nothing_happens_before_now() -> None:
    time, heard = VirtualClock(), list[float]()
    time.after(5.0, lambda: time.after(-3.0, lambda: heard.append(time.monotonic())) and None)  # type: ignore[arg-type]
    time.run(10.0, never)
    assert heard == [5.0]

"""A report about the folder of a service that does not run, and its repair."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from .dead import DeadLetters, told_letter
from .letters import Letters
from .locking import locked, usable
from .recovery import EVENTS, Survey, told
from .service import Service
from .settings import Settings
from .waiting import Waiting

PARTS = ("journal", "snapshots", "ids", "mark-1", "mark-2", "waiting.sqlite")  # a folder with none of them is another one


def check(folder: Path, repair: bool, tell: Callable[[str], None]) -> bool:
    """Tell what is damaged or lost in a folder; return whether all of it is whole, or has been repaired.

    Repairing does what starting the service does: it restores the models from all that is whole, and sets damaged files aside.
    In addition, losses are accepted: they are no longer shown.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernling.serve.check import check
    >>> from kernling.serve.service import Service
    >>> service = Service(Path("checked"))
    >>> _ = service.learn("flights", [{"km": 2.5, "target": "late"}]).result()
    >>> service.stop()
    >>> check(Path("checked"), False, print)
    flights: 1 event, none is missing
    True
    """
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}: give the --data folder of kernling serve")
    if not any((folder / name).exists() for name in PARTS):
        raise ValueError(f"{folder} is not the folder of a service: give the --data folder of kernling serve")
    with usable(folder):
        lock = locked(folder)
        try:
            is_whole = _report(folder, tell)
        finally:
            lock.close()
        if is_whole or not repair:
            return is_whole
        service = Service(folder)
        service.accept_losses()
        service.stop()
    tell("repaired: all that was intact is kept, and damaged files are renamed to .damaged; send the lost events again")
    return True


def _report(folder: Path, tell: Callable[[str], None]) -> bool:
    survey, dead = Survey(folder), DeadLetters(folder / "dead")
    letters = _letters(folder)
    found = [*survey.damage(), *dead.damage, *letters.damage, *_waiting_damage(folder, is_new=not survey.numbers())]
    is_whole = True
    if not survey.numbers():
        tell("there are no models")
    for number in survey.numbers():
        newest, damage = survey.snapshots.newest(number)
        plan = survey.plan(number, newest)
        if plan.definition is None:
            found.append(f"the name of model {number} is lost, and so are its events: send them again")
            continue
        here = newest.state.events if newest else 0
        here += sum(one.rows for one in plan.blocks if not dead.has(number, one.first))
        lost = sum(one["end"] - one["first"] for one in plan.lost if one["what"] == EVENTS)
        ending = f"{lost:,} more are lost" if lost else "none is missing"
        tell(f"{plan.definition.name}: {here:,} event{'s' * (here != 1)}, {ending}")
        details = [*damage, *plan.notes, *map(told, plan.lost)]
        is_whole = is_whole and not details
        details += map(told_letter, dead.of(number))
        if aside := letters.counts[number]:
            details.append(f"{aside:,} event{'s' * (aside != 1)} of a source could not be used: see letters.sqlite")
        for one in details:
            tell(f"  {one}")
    for one in found:
        tell(one)
    return is_whole and not found


def _waiting_damage(folder: Path, is_new: bool) -> list[str]:
    """Return what is wrong with the waiting rows."""
    with _copied(folder, "waiting.sqlite") as path:
        waiting = Waiting(path, Settings())
        waiting.close()
        return waiting.damage(is_new)


def _letters(folder: Path) -> Letters:
    """Return what is known of the events of sources that were set aside."""
    with _copied(folder, "letters.sqlite") as path:
        letters = Letters(path, Settings().letters)
        letters.close()
        return letters


@contextmanager
def _copied(folder: Path, name: str) -> Iterator[Path]:
    """Copy a database to look at it: SQLite would finish in the original what a crash has left."""
    with TemporaryDirectory() as copies:
        for end in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copy(folder / f"{name}{end}", copies)
        yield Path(copies) / name

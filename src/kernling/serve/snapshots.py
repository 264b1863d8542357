"""Snapshots: model files with all that is needed to go on without the journal.

The last two of a model are kept, in case the newest is damaged.  The name of a file is the number of events that it covers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from .. import models
from .journal import Definition
from .live import LiveModel, State
from .progress import RunningLosses
from .refusal import first_line

KEPT = 2
READING = "service"  # key of the service's data in the header of the file
NEW, DAMAGED = ".new", ".damaged"


class Snapshot(NamedTuple):
    """The contents of a snapshot."""

    state: State
    definition: Definition
    history: list[Any]
    lost: list[dict[str, Any]]
    ids: tuple[int, int]  # range of events whose ids are in the logs of ids


class Found(NamedTuple):
    """The newest intact snapshot of a model, if there is one, and a sentence for every damaged one."""

    newest: Snapshot | None
    damage: list[str]


class Snapshots:
    """The snapshots in a folder, with a subfolder for each model, named by its number."""

    def __init__(self, folder: Path):
        self.folder = folder

    def _paths(self, number: int, suffix: str = ".kern") -> list[Path]:
        """Return the snapshots of a model, oldest first."""
        return sorted(path for path in (self.folder / str(number)).glob(f"*{suffix}") if path.stem.isdigit())

    def numbers(self) -> list[int]:
        """Return the numbers of all models with a file, damaged or not."""
        return sorted({int(path.parent.name) for path in self.folder.glob("*/*.kern") if path.parent.name.isdigit()})

    def last_number(self) -> int:
        """Return the highest number of a model with a file, damaged or not."""
        return max((int(path.parent.name) for path in self.folder.glob("*/*") if path.parent.name.isdigit()), default=0)

    def last_end(self, number: int) -> int:
        """Return the highest number of events of all files of a model, damaged or not."""
        paths = [*self._paths(number), *self._paths(number, DAMAGED)]
        return max((int(path.stem) for path in paths), default=0)

    def covered(self, number: int) -> int:
        """Return the number of events that two snapshots have, so that the journal is not needed up to there; -1 if none."""
        paths = self._paths(number)
        return int(paths[-KEPT].stem) if len(paths) >= KEPT else -1

    def write(
        self, model: LiveModel, state: State, history: Sequence[Any], ids: tuple[int, int], suffix: str = ".kern"
    ) -> None:
        """Save a state."""
        path = self.folder / str(model.number) / f"{state.position:016d}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        held = {
            "position": state.position,
            "definition": [model.name, model.spec, model.traits.to_plain(), model.from_file, model.renamed],
            "progress": state.progress.to_plain() if state.progress else None,
            "history": list(history),
            "lost": list(model.lost),
            "telling": list(state.telling),
            "ids": ids,
            "offsets": state.offsets,
        }
        models.save(state.model, path, {READING: held})
        for old in self._paths(model.number)[:-KEPT]:
            old.unlink()

    def enter(self, number: int) -> None:
        """Make the file with which a model was created its first snapshot, once the journal has the model."""
        for path in self._paths(number, NEW):
            path.replace(path.with_suffix(".kern"))

    def remove(self, number: int) -> None:
        """Remove all files of a model that was never entered, or is deleted."""
        folder = self.folder / str(number)
        for path in folder.glob("*"):
            path.unlink()
        with suppress(FileNotFoundError):
            folder.rmdir()

    def newest(self, number: int, refuse: Callable[[str], str | None] | None = None) -> Found:
        """Return the newest snapshot that is whole; ``refuse`` is asked before each is read, and says why not to."""
        damage: list[str] = []
        for path in reversed(self._paths(number)):
            reason = refuse(path.name) if refuse else None
            if reason is None:
                try:
                    return Found(_read(path), damage)
                except (OSError, ValueError, KeyError, TypeError) as error:
                    reason = f"is damaged: {first_line(error).replace(str(path), 'it')}"
            damage.append(f"snapshot {path.name} {reason}")
        return Found(None, damage)

    def set_aside(self, number: int, newest: State | None) -> None:
        """Rename the snapshots that are newer than the newest whole one."""
        for path in self._paths(number):
            if newest is None or int(path.stem) > newest.position:
                path.replace(path.with_suffix(DAMAGED))


def _read(path: Path) -> Snapshot:
    saved = models.read(path)
    held = saved.reading[READING]
    progress = None if held["progress"] is None else RunningLosses.from_plain(held["progress"])
    state = State(saved.model, progress, held["position"], telling=tuple(held["telling"]), offsets=held["offsets"])
    if state.position != int(path.stem):
        raise ValueError(f"it is of {state.position} events")
    return Snapshot(state, Definition(*held["definition"]), held["history"], held["lost"], tuple(held["ids"]))

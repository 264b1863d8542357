"""Snapshots: model files with their position in the journal.  The last two are kept, in case the newest is damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import models
from .live import State
from .progress import Progress
from .refusal import first_line

KEPT = 2
READING = "service"  # key of the service's data in the header of the file


class Found(NamedTuple):
    """The newest intact snapshot of a model, if there is one, and messages about damaged ones."""

    state: State | None
    history: list[Any]
    damage: list[str]


class Snapshots:
    """The snapshots in a folder, with a subfolder for each model, named by its number."""

    def __init__(self, folder: Path):
        self.folder = folder

    def _paths(self, number: int) -> list[Path]:
        """Return the snapshots of a model, oldest first."""
        return sorted((self.folder / str(number)).glob("*.kern"))

    def last(self) -> tuple[int, int]:
        """Return the highest model number and the highest position of all files, damaged or not."""
        found = [path for path in self.folder.glob("*/*") if path.stem.isdigit() and path.parent.name.isdigit()]
        return max((int(path.parent.name) for path in found), default=0), max((int(path.stem) for path in found), default=0)

    def write(self, number: int, state: State, history: Sequence[Any]) -> int:
        """Save a state; return the position up to which the journal is no longer needed."""
        path = self.folder / str(number) / f"{state.position:016d}.kern"
        path.parent.mkdir(parents=True, exist_ok=True)
        held = {
            "position": state.position,
            "progress": state.progress.to_plain() if state.progress else None,
            "history": list(history),
        }
        models.save(state.model, path, {READING: held})
        paths = self._paths(number)
        for old in paths[:-KEPT]:
            old.unlink()
        return int(paths[-KEPT].stem) if len(paths) >= KEPT else 0

    def remove(self, number: int) -> None:
        """Remove all snapshots of a model."""
        for path in self._paths(number):
            path.unlink()

    def newest(self, number: int) -> Found:
        """Return the newest snapshot that is whole; those that are not are renamed."""
        damage: list[str] = []
        for path in reversed(self._paths(number)):
            try:
                saved = models.read(path)
                held = saved.reading[READING]
                progress = None if held["progress"] is None else Progress.from_plain(held["progress"])
                return Found(State(saved.model, progress, held["position"]), held["history"], damage)
            except (ValueError, KeyError, TypeError) as error:
                damage.append(f"a damaged snapshot was skipped: {first_line(error)}")
                path.replace(path.with_suffix(".damaged"))
        return Found(None, [], damage)

"""The rows that an ``Encode`` is given, as tables with all of its columns and as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.constraints import short
from ..warned import warn
from . import dates
from .frames import as_table, has_names
from .late import new_columns
from .scalers import SCALED
from .schema import dates_of, names_of
from .table import RowError, Table, listed, no_column
from .written import is_gap, numbers


class ReadsTables:
    """How an ``Encode`` reads rows: columns that are lacking or new, gaps, and values that cannot be read."""

    def _table(self: Any, X: Any, learn: bool = False) -> Table:
        """Return the rows as a table with all required columns; with ``learn``, new columns of dictionaries are welcome."""
        table = as_table(X)
        if not has_names(X):
            found, own = len(table.names), self.n_features_in_
            if found != own:
                raise ValueError(f"X has {found} features, but {type(self).__name__} is expecting {own} features as input")
            given = (column.name for column in self.schema_ if column.name not in self.past_names)
            return Table(dict(zip(given, table.columns.values(), strict=True)))
        self._check_names(table)
        new = [name for name in table.columns if name not in self._places]
        if new:
            self._meet(table, new, learn)
        return table.completed(name for name in self._places) if table.keyed else table

    def _check_names(self: Any, table: Table) -> None:
        """Raise if columns are lacking: any one of a table, all of a dictionary, in which others are missing values."""
        past = self.past_names
        used = [column.name for column in self._own if column.treatment != "ignore" and column.name not in past]
        lacking = [name for name in used if name not in table.columns]
        has_late = any(one.column.name in table.columns for one in self._late)
        if table.keyed and self.missing == "impute" and (len(lacking) < len(used) or not used or has_late):
            return
        if len(lacking) == 1:
            raise ValueError(no_column(lacking[0], table.columns))
        if lacking:
            raise ValueError(f"there are no columns {listed(lacking)}; the columns are {listed(table.columns)}")

    def _meet(self: Any, table: Table, names: list[str], learn: bool) -> None:
        """Give new columns some of those that are kept free, or warn that they are ignored."""
        known = {one.column.name for one in self._late}
        names = [name for name in names if name not in known]
        if learn and self._spare and names:
            used = self._late[-1].end if self._late else 0
            found = new_columns(table, names, used, self._spare)
            self._welcome((*self._late, *found))
            for one in found:
                self._warn(one.column.name, f"column {short(one.column.name)} is new: it is learned from now on")
            full = used + sum(one.column.width for one in found) >= self._spare
            names = [name for name in names if name not in {one.column.name for one in found}] if full else []
        if names:
            self._warn("new", f"the columns {listed(sorted(names))} were not present in the first rows and are ignored")

    def _warn(self: Any, about: str, message: str) -> None:
        """Warn once about a column, or about all ignored or new ones."""
        if about not in self._told:
            self._told += (about,)
            warn(message)

    def _values(self: Any, table: Table, learn: bool = False) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return numbers, elapsed days and booleans as columns, NaN where missing, and all dates."""
        values = np.empty((len(table), len(self._measured)))
        columns = {column.name: column for column in self._own}
        times = {name: dates_of(table, name, columns[name].form) for name in names_of(self._own, "date")}
        for place, name in enumerate(self._measured):
            if name in times:
                values[:, place] = dates.elapsed(times[name], columns[name].origin)
            elif self.missing == "error":
                values[:, place] = table.numbers(name, form=columns[name].form)
            else:
                values[:, place] = numbers(table.columns[name], columns[name].form)
        if not _usable(values).all():
            self._look_at_gaps(table, values, learn)
        return values, times

    def _look_at_gaps(self: Any, table: Table, values: np.ndarray, learn: bool) -> None:
        """Raise for missing values, or set them to NaN, and count and warn about values that cannot be parsed."""
        if self.missing == "error":
            for name, column in zip(self._measured, values.T, strict=True):
                _check_present(name, table.missing(name))
                _check_dates(table, name, np.isnan(column))
            raise ValueError(f"the rows contain infinity or numbers above {SCALED:g}; fill or drop such values before encoding")
        values[~_usable(values)] = np.nan
        for name, column in zip(self._measured, values.T, strict=True):
            lost = np.flatnonzero(np.isnan(column))
            wrong = [value for value in table.columns[name][lost].tolist() if not is_gap(value)] if len(lost) else []
            if wrong:
                kind = next(one.treatment for one in self._own if one.name == name)
                value = short(str(wrong[0]))
                self._warn(name, f"{value} in column {short(name)} cannot be used as a {kind} and counts as missing")
                if learn:
                    self.unread_ = self.unread_ | {name: self.unread_.get(name, 0) + len(wrong)}

    def readable(self: Any, X: Any) -> np.ndarray:
        """Return a mask of the rows that can be encoded: all rows if missing values are imputed."""
        table = self._table(X)
        good = np.ones(len(table), dtype=bool)
        for column in self._own if self.missing == "error" else ():
            if column.treatment == "date":
                good &= ~np.isnat(dates_of(table, column.name, column.form))
            elif column.is_measured:
                good &= _usable(numbers(table.columns[column.name], column.form))
            elif column.treatment == "category":
                good &= ~table.missing(column.name)
        return good

    @property
    def watched_names(self: Any) -> list[str]:
        """Names of the columns whose values can be compared with earlier ones: first numbers and booleans, then categories."""
        names = [*names_of(self._own, "number"), *names_of(self._own, "boolean"), *names_of(self._own, "category")]
        return [name for name in names if name not in self.past_names]

    def watched(self: Any, X: Any) -> np.ndarray:
        """Return the values of these columns as they were given, NaN where missing; of categories, their numbers."""
        plain = self._plain_table(X)
        if plain is not None:
            return plain
        table, columns, names = self._table(X), {column.name: column for column in self._own}, self.watched_names
        found = np.empty((len(table), len(names)))
        for place, name in enumerate(names):
            if columns[name].treatment != "category":
                found[:, place] = numbers(table.columns[name], columns[name].form)
                continue
            words, codes = table.categories(name)
            known = self._places[name]
            found[:, place] = np.array([known.get(word, len(known)) for word in words], np.float64)[codes]
            found[table.missing(name), place] = np.nan
        found[~_usable(found)] = np.nan
        return found

    def _check_gaps(self: Any, name: str, gaps: np.ndarray) -> None:
        if self.missing == "error":
            _check_present(name, gaps)


def _usable(values: np.ndarray) -> np.ndarray:
    """Return a mask of the values that are neither missing nor too large for running means and scales."""
    return np.abs(values) <= SCALED


def _check_present(name: str, gaps: np.ndarray) -> None:
    if gaps.any():
        row = int(gaps.argmax())
        raise RowError(f"row {row + 1} has no value in column {name!r}: fill NaN and None before encoding", row)


def _check_dates(table: Table, name: str, wrong: np.ndarray) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        value = str(table.columns[name][row])
        raise RowError(f"row {row + 1}: {short(value)} in column {short(name)} is not an ISO 8601 date such as 2026-01-31", row)

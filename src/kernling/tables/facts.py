"""What a fitted ``Encode`` says about its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .scalers import Scale
from .schema import names_of


class TellsColumns:
    """The encoded columns of an ``Encode``, where they come from, and what it has learned of them."""

    @property
    def is_running(self: Any) -> bool:
        """Whether learning changes how a row is encoded."""
        return self.scale is not None or self.missing == "impute" or bool(getattr(self, "_prose", ()))

    @property
    def nbytes(self: Any) -> int:
        """Memory of what is known of words, in bytes."""
        return sum(one.nbytes for one in self._prose)

    @property
    def columns_out(self: Any) -> int:
        """Number of columns of encoded rows."""
        return self._width + self._spare + (self.hash or 0)

    @property
    def imputed_(self: Any) -> int:
        """Number of learned rows in which a number, boolean or date was imputed."""
        return self._fill.rows

    @property
    def past_names(self: Any) -> list[str]:
        """Names of the columns of the past."""
        return self._past.names

    @property
    def disordered_(self: Any) -> int:
        """Number of learned rows whose time is before that of an earlier row."""
        return self._order.count

    def measured(self: Any) -> dict[str, tuple[float | None, Scale | None]]:
        """Return the fill value, if any, and the scale of each column of numbers, booleans and dates."""
        fills = self._fill.mean.tolist() if self.missing == "impute" else [None] * len(self._measured)
        scales: list[Scale | None] = [None] * len(self._measured)
        if self.scale_ is not None and self._scaled:
            shift, width, *rest = self.scale_.scale_now()
            scales[: self._scaled] = [Scale(*column, *rest) for column in zip(shift, width, strict=True)]
        found = dict(zip(self._measured, zip(fills, scales, strict=True), strict=True))
        return found | {one.column.name: (one.mean, one.scale) for one in self._late if one.column.is_measured}

    def typical(self: Any) -> dict[str, Any]:
        """Return a row of means and of categories that are there, for examples; None for dates."""
        means = {name: float(f"{fill:.4g}") for name, (fill, _) in self.measured().items() if fill is not None}
        found: dict[str, Any] = {column.name: column.categories[0] if column.categories else None for column in self.schema_}
        found |= {name: means.get(name) for name in names_of(self.schema_, "number", "boolean")}
        return {name: value for name, value in found.items() if name not in self.past_names}

    @property
    def free(self: Any) -> int:
        """Number of encoded columns that are kept free for columns that come later."""
        return self._spare - (self._late[-1].end if self._late else 0)

    def get_feature_names_out(self: Any, input_features=None) -> np.ndarray:
        """Return the names of the encoded columns."""
        check_is_fitted(self)
        names = [name for column, _ in self._layout for name in column.names_out()]
        names += [name for one in self._late for name in one.column.names_out()]
        names += [f"free={place}" for place in range(self.free)]
        return np.array([*names, *(f"hash={i}" for i in range(self.hash or 0))], dtype=object)

    @property
    def sources(self: Any) -> list[str]:
        """The column that each encoded column comes from; all hashed categories together; no name where one is kept free."""
        hashed = " and ".join(names_of(self.schema_, "category")) if self.hash else ""
        names = [column.name for column, _ in self._layout for _ in range(column.width)]
        names += [one.column.name for one in self._late for _ in range(one.column.width)]
        return [*names, *([""] * self.free), *([hashed] * (self.hash or 0))]

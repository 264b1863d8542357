"""``published()``: estimators with exactly the settings of the paper.

A class declares them as data::

    class AVMClassifier(OnlineClassifier):
        published_settings = Published(
            required=("gamma", "lam", "delta"),
            choices={"loss": ("hinge", "smooth_hinge", "logistic")},
            off={"max_cells": None},
        )

from which ``AVMClassifier.published(*, gamma, lam, delta, loss="hinge", ...)``, its signature and its docstring are generated.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from .parameters import WIDTH

# how, not what, is computed
RUNNING = ("random_state", "dtype", "block_size", "passes", "shuffle", "n_jobs", "verbose", "calibrate", "watch")
_HEAD = """Return an estimator with the published algorithm: nothing of kernling's own, and no default that is not the paper's.

{citation}

It sets {off}. ``set_params`` changes any of these, which is then no longer as published.
"""


@dataclass(frozen=True)
class Published:
    """The settings of a paper; together with ``RUNNING`` they name every parameter of the estimator.

    Attributes
    ----------
    required : tuple of str
        Parameters for which the paper has no value, or a different one for each data set.
    values : dict
        Parameters that have one value in the paper, which may be changed.
    choices : dict
        Parameters of which the paper has several variants, the first being the usual one; others are refused.
    off : dict
        Values that switch off what is not in the paper.
    required_with : dict
        Parameters that are required only with a value of another one: ``{"theta": ("oracle", "coverage")}``.
    """

    required: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    off: dict[str, Any] = field(default_factory=dict)
    required_with: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def also(self, required: tuple[str, ...] = (), **more: dict[str, Any]) -> Published:
        """Return these settings and more."""
        return replace(
            self, required=(*self.required, *required), **{name: getattr(self, name) | new for name, new in more.items()}
        )

    def settings(self, owner: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Return the values of an estimator's parameters, or raise for one that is missing or not the paper's."""
        title, accepted = f"{owner.__name__}.published()", self.accepted(owner)
        usual = self.values | {name: several[0] for name, several in self.choices.items()}
        chosen = usual | given
        needed = [*self.required]
        needed += [name for name, (other, value) in self.required_with.items() if chosen.get(other) == value]
        missing = [name for name in needed if name not in given]
        if missing:
            names = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
            raise TypeError(f"{title} requires {names}, for which the paper has no value")
        for name, value in given.items():
            if name in self.off:
                raise TypeError(
                    f"{title} does not accept {name}, which it sets to {self.off[name]!r} as in the paper; use "
                    f"set_params({name}={value!r}) to depart from it"
                )
            if name not in accepted:
                raise TypeError(f"{title} has no parameter {name!r}; it has {', '.join(accepted)}")
            if name in self.choices and value not in self.choices[name]:
                several = ", ".join(map(repr, self.choices[name]))
                raise ValueError(f"{title} accepts {name} = {several}, which are in the paper, but not {value!r}")
        return self.off | chosen

    def accepted(self, owner: Any) -> list[str]:
        """Return the names of the parameters that may be given for an estimator."""
        running = [name for name in RUNNING if name in owner.parameters]
        return list(dict.fromkeys([*self.required, *self.required_with, *self.choices, *self.values, *running]))


class _PublishedMethod:
    """The class method ``published`` of every estimator that declares ``published_settings``; others do not have it."""

    def __get__(self, instance: Any, owner: Any) -> Callable[..., Any]:
        paper: Published | None = owner.published_settings
        if paper is None:
            raise AttributeError(f"{owner.__name__} has no published settings: it is not in the paper of its method")

        def published(**given: Any) -> Any:
            return owner(**paper.settings(owner, given))

        published.__qualname__ = f"{owner.__qualname__}.published"
        published.__doc__ = _documentation(owner, paper)
        published.__signature__ = inspect.Signature([_keyword(owner, paper, name) for name in paper.accepted(owner)])  # type: ignore[attr-defined]
        return published


class AsPublished:
    """Mixin with the class method ``published``."""

    published_settings: ClassVar[Published | None] = None
    published = _PublishedMethod()


def _keyword(owner: Any, paper: Published, name: str) -> inspect.Parameter:
    default = inspect.Parameter.empty
    if name in paper.choices:
        default = paper.choices[name][0]
    elif name in paper.values:
        default = paper.values[name]
    elif name not in paper.required:
        default = owner.parameters[name].default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


def _kind(owner: Any, paper: Published, name: str) -> str:
    """Return what is said about a parameter besides its meaning."""
    if name in paper.required_with:
        other, value = paper.required_with[name]
        return f"required with {other}={value!r}"
    if name in paper.required:
        return "required"
    if name in paper.choices:
        return ", ".join(map(repr, paper.choices[name]))
    return f"default={paper.values.get(name, owner.parameters[name].default)!r}"


def _documentation(owner: Any, paper: Published) -> str:
    """Return the docstring."""
    off = ", ".join(f"``{name}={value!r}``" for name, value in paper.off.items())
    lines = [_HEAD.format(citation=owner.learner.citation, off=off), "Parameters", "----------"]
    for name in paper.accepted(owner):
        lines.append(f"{name} : {_kind(owner, paper, name)}")
        doc = owner.parameters[name].doc
        lines += textwrap.wrap(doc, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"

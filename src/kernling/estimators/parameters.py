"""Declaration of parameters with default, constraint, search range and documentation.

A class declares its own parameters and inherits those of its bases::

    class AVMClassifier(OnlineClassifier):
        lam: float = parameter(default=1e-4, allowed=POSITIVE, search=Log(1e-7, 1e-2), doc="Weight of the regulariser.")

The declarations define the signature of the constructor (keyword-only, as used by ``get_params`` and ``clone``), the
section "Parameters" of the docstring, the checks and the search space.  A subclass that redeclares a parameter changes
the given parts and keeps the rest; one that sets it to a plain value (``class_weight = None``) removes the parameter.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, dataclass_transform

from .constraints import NOTHING, Rule, check
from .ranges import Range

WIDTH = 112  # of a line of documentation
_AFTER = ("Attributes", "Methods", "See Also", "Notes", "References", "Examples")  # sections that follow the parameters
_INHERIT: Any = object()


@dataclass(frozen=True)
class Parameter:
    """The declaration of one parameter."""

    default: Any
    allowed: tuple[Rule, ...]
    doc: str
    search: Range | None
    resolve: Callable[[Any, dict[str, Any]], float] | None

    def over(self, inherited: Parameter) -> Parameter:
        """Return this declaration, completed by the one it overrides."""
        own = {name: value for name, value in vars(self).items() if value is not _INHERIT}
        return replace(inherited, **own)

    def complete(self) -> Parameter:
        """Return this declaration, completed without inheriting."""
        usual: dict[str, Any] = {"allowed": (), "doc": "", "search": None, "resolve": None}
        return replace(self, **{name: value for name, value in usual.items() if getattr(self, name) is _INHERIT})

    @property
    def kind(self) -> str:
        """Type shown in the documentation."""
        kinds = [rule.kind for rule in self.allowed if rule is not NOTHING]
        words = ", ".join(kinds[:-1]) + (" or " if kinds[:-1] else "") + kinds[-1]
        if self.default is None:
            return f"{words}, optional"
        return f"{words}{' or None' if NOTHING in self.allowed else ''}, default={self.default!r}"


def parameter(
    *,
    default: Any,
    allowed: Rule | tuple[Rule, ...] = _INHERIT,
    doc: str = _INHERIT,
    search: Range | None = _INHERIT,
    resolve: Callable[[Any, dict[str, Any]], float] | None = _INHERIT,
) -> Any:
    """Declare a parameter.

    Parameters
    ----------
    default : object
        The default value.
    allowed : constraint or tuple of constraints
        The value must satisfy one of them; see constraints.py.
    doc : str
        Description for the docstring.
    search : range, optional
        Search range; see ranges.py.
    resolve : callable, optional
        ``resolve(X, options)`` computes the value of "auto" and the like from the first rows and the other parameters.
    """
    several: Any = (allowed,) if hasattr(allowed, "admits") else allowed
    return Parameter(default, several, doc, search, resolve)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
class Parameterised:
    """Base class whose constructor, documentation and validation are generated from the declared parameters."""

    parameters: ClassVar[dict[str, Parameter]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.parameters = _declared(cls)

        def __init__(self, **values: Any) -> None:
            for name in values:
                if name not in cls.parameters:
                    raise TypeError(f"{cls.__name__} has no parameter {name!r}; it has {', '.join(cls.parameters)}")
            for name, declared in cls.parameters.items():
                setattr(self, name, values.get(name, declared.default))

        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=declared.default)
            for name, declared in cls.parameters.items()
        ]
        self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        __init__.__signature__ = inspect.Signature([self, *keywords])  # type: ignore[attr-defined]
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__  # type: ignore[assignment, method-assign]
        cls.__doc__ = _Documentation(cls.__doc__ or "")  # type: ignore[assignment]

    @classmethod
    def _documented(cls, text: str) -> str:
        """Return the docstring of the class, of which this text was written."""
        return _with_parameters(text, cls.parameters)

    def check_own_parameters(self) -> None:
        """Raise for a value that violates its constraint; unless one was set since, they are not checked again."""
        if "_allowed" not in self.__dict__:
            values = {name: getattr(self, name) for name in self.parameters}
            self.check_parameters(values)
            if not any(isinstance(value, dict) for value in values.values()):  # which may change by itself
                self._allowed = object()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.parameters:
            self.__dict__.pop("_allowed", None)  # stands for all values, once they have been checked
        super().__setattr__(name, value)

    @classmethod
    def check_parameters(cls, values: dict[str, Any]) -> None:
        """Raise for the first value that violates its constraint."""
        check(cls.__name__, values, {name: declared.allowed for name, declared in cls.parameters.items()})


def _declared(cls: type) -> dict[str, Parameter]:
    """Collect the parameters of a class and its bases; its own come first."""
    found: dict[str, Parameter] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Parameter):
                found[name] = value.over(found[name]) if name in found else value.complete()
            else:
                found.pop(name, None)
    order = dict.fromkeys(name for base in cls.__mro__ for name in vars(base) if name in found)
    return {name: found[name] for name in order}


class _Documentation:
    """A docstring that is generated when it is read: for all classes, that would take as long as importing them."""

    def __init__(self, text: str):
        self._text = text

    def __get__(self, instance: Any, owner: type[Parameterised]) -> str:
        return owner._documented(self._text)


def _with_parameters(text: str, parameters: dict[str, Parameter]) -> str:
    """Insert the section "Parameters" into a docstring."""
    lines = ["Parameters", "----------"]
    for name, declared in parameters.items():
        lines.append(f"{name} : {declared.kind}")
        lines += textwrap.wrap(declared.doc, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    blocks = inspect.cleandoc(text).split("\n\n")
    place = next((i for i, block in enumerate(blocks) if block.split("\n")[0] in _AFTER), len(blocks))
    return "\n\n".join([*blocks[:place], "\n".join(lines), *blocks[place:]]) + "\n"

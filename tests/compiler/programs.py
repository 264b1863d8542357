"""Random programs in the language of the fast backend, compared with plain Python and with Numba.

    python tests/compiler/programs.py SEED COUNT NUMBA MOST

writes COUNT programs of at most MOST statements at their top, runs each of them, and every NUMBA-th of them compiled by Numba
alone; it prints those that differ.
Numbers are small multiples of 1/8 and nothing may be reordered, so results are the same; compiled code and Numba compute cubes
by two products, which round twice, so the last bits of floats may differ.  An index lies within
all arrays by construction: variables j0 and j1 are between -4 and 3, and no array has fewer than 4 rows or columns.
Some programs contain what the fast backend leaves to Numba; no others may fall back.
"""

import importlib.util
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

HEAD = """
import numpy as np
from typing import NamedTuple
from kernling.compiler import shaped
from kernling.compiler.decorators import FRAGMENT, UNIT, _INNER, _Flags, _compile

EXACT = _Flags()
SHIFT, SCALE, MANY = 3, 0.625, np.float32(1.75)


class Inside(NamedTuple):
    table: np.ndarray
    level: float


class Record(NamedTuple):
    row: np.ndarray
    inside: Inside
    count: int
    flag: bool


class Buffer:
    ASSIGNED = ("next", "best", "part")

    def __init__(self, row):
        self.next, self.best, self.part, self.row = 1, 0.5, row, row


def entry(function):
    return _compile(function, EXACT, function, no_cfunc_wrapper=True)


def unit(function):
    return _compile(function, EXACT, function, UNIT, **_INNER)


def fragment(function):
    return _compile(function, EXACT, function, FRAGMENT, **_INNER, forceinline=True)
"""


# by the last two digits of a program's number
LEFT_TO_NUMBA = {
    "50": ("s = 0", "s = s + np.sign(s)", "s = s + f0"),  # the sign of what is an integer on the first pass
    "75": ("s = 0.5", "u = n, x", "if q0:", "    u = x, n", "s = u[0] - u[1]"),  # a tuple whose types change
}


class Writer:
    """Writes one program."""

    def __init__(self, seed: int, number: int, most: int):
        self.most = most
        self.random = random.Random(f"{seed} {number}")
        self.name, self.lines, self.depth, self.loops = f"program_{number}", [], 1, 0
        self.callees: list[tuple[str, str]] = []
        self.arrays = {"a": 1, "m": 2, "r.row": 1, "r.inside.table": 2, "w": 1, "k.row": 1}
        self.ints, self.loop_ints = ["i0", "i1", "j0", "j1"], []

    @property
    def is_left_to_numba(self) -> bool:
        return self.name[-2:] in LEFT_TO_NUMBA

    def pick(self, *choices):
        return self.random.choice(choices)

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    # expressions

    def index(self) -> str:
        j = self.pick("j0", "j1", *self.loop_ints)
        return self.pick(
            j,
            j,
            j,
            f"-{j} - 1",
            f"{j} % 4",
            f"{j} % 4 - {self.random.randint(0, 4)}",
            f"{j} // 2",
            f"min({j}, {self.pick('1', '-2', 'j1')})",
            "-1",
            "0",
            "3",
            "-4",
        )

    def whole(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.2:
            return self.pick(
                *self.ints,
                *self.loop_ints,
                "n",
                "SHIFT",
                "r.count",
                "k.next",
                f"b[{self.index()}]",
                "a.size",
                "m.shape[1]",
                str(self.random.randint(-9, 9)),
            )
        one, two = self.whole(depth - 1), self.whole(depth - 1)
        kind = self.random.randrange(14)
        if kind < 5:
            return f"({one} {self.pick('+', '-', '*')} {two})"
        if kind < 8:
            divisor = self.pick("3", "-3", "7", "-2", f"(abs({two}) + 1)", f"(-abs({two}) - 1)", "4", "-5")
            return f"({one} {self.pick('//', '%')} {divisor})"
        return [
            f"abs({one})",
            f"{self.pick('min', 'max')}({one}, {two})",
            f"({one} if {self.truth(depth - 1)} else {two})",
            f"({one} {self.pick('&', '|', '^')} {two})",
            f"(({one}) {self.pick('<<', '>>')} {self.random.randint(0, 3)})",
            self.pick(f"(-({one}))", f"int({self.real(depth - 1)})", f"(({one}) % 8) ** 2", f"np.int64({one})"),
        ][kind - 8]

    def single(self) -> str:
        """A float32: never mixed with other numbers, whose type NumPy and Numba choose differently."""
        one, two = (self.pick(f"c[{self.index()}]", "MANY", "g0") for _ in range(2))
        return self.pick(
            one, f"({one} {self.pick('+', '-', '*')} {two})", f"max({one}, {two})", f"abs({one})", f"np.float32({self.real(0)})"
        )

    def element(self) -> str:
        name = self.pick(*self.arrays)
        return f"{name}[{self.index()}]" if self.arrays[name] == 1 else f"{name}[{self.index()}, {self.index()}]"

    def real(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.2:
            return self.pick(
                "f0",
                "f1",
                "x",
                "SCALE",
                "r.inside.level",
                "k.best",
                f"{self.random.randint(-40, 40) / 8}",
                self.element(),
                self.element(),
                "t[1]",
                "m[j0][j1]",
            )
        one, two = self.real(depth - 1), self.real(depth - 1)
        kind = self.random.randrange(14)
        if kind < 6:
            return f"({one} {self.pick('+', '-', '*')} {two})"
        return [
            f"({one} / (abs({two}) + 1.0))",
            f"abs({one})",
            f"{self.pick('min', 'max')}({one}, {two}, {self.real(0)})",
            f"({one} if {self.truth(depth - 1)} else {two})",
            self.pick(f"np.sqrt(abs({one}))", f"np.floor({one})", f"np.ceil({one})", f"(-({one}))", f"np.sign({one} + 0.0)"),
            self.pick(f"float({self.whole(depth - 1)})", f"np.float64({self.single()})", f"({self.whole(depth - 1)} + {one})"),
            self.pick(f"({one} % {self.pick('2.5', '-1.75', '0.5')})", f"({one}) ** 2", f"({one}) ** 3"),
            self.call(depth) if self.callees else one,
        ][kind - 6]

    def call(self, depth: int) -> str:
        name, _ = self.pick(*self.callees)
        return f"{name}({self.pick('a', 'w', 'r.row', 'k.row')}, {self.whole(0)}, {self.real(0)})"

    def truth(self, depth: int = 1) -> str:
        sign = lambda: self.pick("<", "<=", ">", ">=", "==", "!=")  # noqa: E731
        if depth == 0 or self.random.random() < 0.6:
            make = self.pick(self.whole, self.real)
            if self.random.random() < 0.15:
                return f"({make(0)} {sign()} {make(0)} {sign()} {make(0)})"
            return (
                self.pick(f"({make(max(depth - 1, 0))} {sign()} {make(0)})", "r.flag", "q0")
                if self.random.random() < 0.9
                else "q0"
            )
        return self.pick(f"({self.truth(0)} {self.pick('and', 'or')} {self.truth(0)})", f"(not {self.truth(0)})")

    # statements

    def block(self, depth: int, count: int) -> None:
        self.depth += 1
        for _ in range(count):
            self.statement(depth)
        self.depth -= 1

    def statement(self, depth: int) -> None:
        kinds = [self.assign, self.assign, self.store, self.store, self.view, self.field, self.group]
        if depth > 0:
            kinds += [self.condition, self.count, self.repeat]
        self.random.choice(kinds)(depth)

    def assign(self, depth: int) -> None:
        kind = self.random.randrange(6)
        if kind < 2:
            name = self.pick("j0", "j1")
            self.emit(f"{name} = min(max({self.whole()}, -4), 3)")
        elif kind == 2:
            self.emit(f"{self.pick('i0', 'i1')} = ({self.whole()}) % {self.pick('11', '-13')}")
        elif kind == 3:
            self.emit(f"g0 = np.float32(min(max({self.single()}, np.float32(-64.0)), np.float32(64.0)))")
        elif kind == 4:
            self.emit(f"q0 = {self.truth(2)}")
        else:
            self.emit(f"{self.pick('f0', 'f1')} = min(max({self.real()}, -64.0), 64.0)")

    def store(self, depth: int) -> None:
        if self.random.random() < 0.25:
            self.emit(
                self.pick(
                    f"b[{self.index()}] = ({self.whole()}) % 17",
                    f"c[{self.index()}] = {self.single()}",
                    f"c[{self.index()}] = {self.real(0)}",
                )
            )
        elif self.random.random() < 0.4:
            self.emit(f"{self.element()} {self.pick('+=', '-=')} {self.real(0)}")
        else:
            self.emit(f"{self.element()} = min(max({self.real()}, -64.0), 64.0)")

    def view(self, depth: int) -> None:
        low, high = (self.pick("", "j0", "j1", str(self.random.randint(-6, 6)), "i0") for _ in range(2))
        source = self.pick(
            f"a[{low}:{high}]",
            f"m[{self.index()}]",
            f"m[:, {self.index()}]",
            f"m[{self.index()}, {low}:{high}]",
            f"m.T[{self.index()}]",
            f"m[{low}:{high}, {self.index()}]",
            f"r.row[{low}:{high}]",
            f"w[{low}:]",
            f"a[1:][{low}:{high}]",
            f"shaped(w, (2, 2))[{self.pick('0', '1', '-1')}]",
            f"r.inside.table[{self.index()}]",
        )
        name = f"v{len(self.lines)}"
        self.emit(f"{name} = {source}")
        self.emit(f"if {name}.size > 0:")
        self.depth += 1
        place = self.pick(
            f"({self.whole(1)}) % {name}.size", f"-1 - ({self.whole(1)}) % {name}.size", "0", "-1", f"{name}.size - 1"
        )
        if self.random.random() < 0.6:
            self.emit(f"{name}[{place}] {self.pick('=', '+=', '-=')} {self.real(0)}")
        self.emit(f"f0 = {name}[{place}] + {self.pick('f1', 'x')}")
        self.depth -= 1

    def field(self, depth: int) -> None:
        self.emit(
            self.pick(
                f"k.next = ({self.whole()}) % 9",
                f"k.best = min(max({self.real()}, -64.0), 64.0)",
                "k.next += 1",
                "k.next = k.next % 9",
            )
        )

    def group(self, depth: int) -> None:
        self.emit(
            self.pick(
                f"t = {self.whole(1)}, {self.real(1)} + 0.0",
                "i0, f1 = t[0] % 11, t[1]",
                "f0, f1 = f1, f0",
                "j0, j1 = j1, j0",
                f"i1 = t[0] % 7 + {self.whole(0)} % 5",
            )
        )
        self.emit("f1 = min(max(f1, -64.0), 64.0)")

    def condition(self, depth: int) -> None:
        self.emit(f"if {self.truth(2)}:")
        self.block(depth - 1, self.random.randint(1, 2))
        if self.random.random() < 0.4:
            self.emit(f"elif {self.truth()}:")
            self.block(depth - 1, 1)
        if self.random.random() < 0.5:
            self.emit("else:")
            self.block(depth - 1, self.random.randint(1, 2))

    def escape(self) -> None:
        if self.random.random() < 0.3:
            self.depth += 1
            self.emit(f"if {self.truth()}:")
            self.emit(f"    {self.pick('break', 'continue')}")
            self.depth -= 1

    def count(self, depth: int) -> None:
        name = f"l{self.loops}"
        self.loops += 1
        bounds = self.pick(
            "4",
            "0, 4",
            "-4, 4",
            "3, -5, -1",
            "0, 4, 3",
            "2, -3, -2",
            "j0",
            "j0, j1",
            "-4, j1",
            "j1, -5, -1",
            "j0, 4, 2",
            "5, 2",
        )
        self.emit(f"for {name} in range({bounds}):")
        self.loop_ints.append(name)
        self.escape()
        self.block(depth - 1, self.random.randint(1, 2))
        self.loop_ints.remove(name)

    def repeat(self, depth: int) -> None:
        name = f"s{self.loops}"
        self.loops += 1
        self.emit(f"{name} = 0")
        self.emit(f"while {self.pick(f'{name} < 3', f'{name} < 4 and {self.truth()}')}:")
        self.emit(f"    {name} += 1")
        self.escape()
        self.block(depth - 1, self.random.randint(1, 2))

    def helper(self, kind: str) -> None:
        """A function that the program calls."""
        name = f"{kind}_{self.name}"
        self.lines += [
            "",
            f"@{kind}",
            f"def {name}(a, n, x):",
            "    j = min(max(n, -4), 3)",
            "    total = 0" if self.pick(0, 1) else "    total = x",
            f"    for i in range({self.pick('4', '-4, j', 'j, 4')}):",
            f"        if a[i] {self.pick('<', '>=')} x:",
            f"            total += {self.pick('a[i]', 'a[j] - x', 'x * i', 'a[-1 - i] * 0.5')}",
            *(["        else:", f"            a[j] = {self.pick('x', 'a[i] + 0.5', '-a[j]')}"] if self.pick(0, 1) else []),
            *([f"    if j > {self.pick('0', '-2')}:", "        return x"] if self.pick(0, 1) else []),
            f"    return {self.pick('total + a[j]', 'total + 0.0', 'max(total, x)')}",
            "",
        ]
        self.callees.append((name, kind))

    def program(self) -> str:
        for kind in ("unit", "fragment"):
            if self.random.random() < 0.5:
                self.helper(kind)
        self.lines += ["", "@entry", f"def {self.name}(a, m, b, c, n, x, r, k):"]
        zero = self.pick("0", "0.0", "1", "-0.5")
        self.lines += [
            "    i0, i1, j0, j1 = 0, n % 5, 1, -2",
            f"    f0, f1, g0, q0 = {zero}, x, c[0], n > 2",
            "    t = n, x",
            f"    w = np.{self.pick('zeros(5)', 'zeros(4)')}",
        ]
        for _ in range(self.random.randint(3, self.most)):
            self.statement(2)
        if self.is_left_to_numba:
            self.lines += [f"    {line}" for line in (*LEFT_TO_NUMBA[self.name[-2:]], "f0 = s")]
        self.lines.append("    return i0, i1, j0 * 10 + j1, f0 + 0.0, f1, np.float64(g0), float(k.next), k.best, w[0] + w[-1]")
        return "\n".join(self.lines) + "\n"


def arguments(writer: Writer, module):
    """Return the arguments of a program, before records are passed by address."""
    numbers = np.random.default_rng(writer.random.randrange(2**32))
    eighths = lambda *shape: numbers.integers(-32, 32, size=shape) / 8  # noqa: E731
    long, rows, columns = (int(one) for one in numbers.integers(4, 7, 3))
    a = eighths(long, 2)[:, 1] if writer.pick(0, 0, 1) else eighths(long)
    m = eighths(columns, rows).T if writer.pick(0, 0, 1) else eighths(rows, columns)
    record = module.Record(eighths(long), module.Inside(eighths(4, 5), 1.25), writer.pick(-3, 0, 4), writer.pick(True, False))
    b, c = numbers.integers(-9, 9, size=long), eighths(long).astype(np.float32)
    return a, m, b, c, writer.pick(-7, -1, 0, 2, 9), writer.pick(-1.5, 0.0, 0.375, 4.0), record, module.Buffer(eighths(5))


def copied(given):
    """Return a copy that shares no memory, with the same layouts."""
    if isinstance(given, np.ndarray):
        copy = (
            np.empty((*given.shape, 2), given.dtype)[..., 1]
            if given.strides[-1] not in (given.itemsize,) and given.ndim == 1
            else np.empty_like(given)
        )
        copy[...] = given
        return copy
    if isinstance(given, tuple):
        parts = [copied(one) for one in given]
        return type(given)(*parts) if hasattr(given, "_fields") else tuple(parts)
    if hasattr(given, "ASSIGNED"):
        return type(given)(copied(given.row))
    return given


def outcome(function, given, by_address):
    """Return what a program returns and leaves in its arrays."""
    a, m, b, c, n, x, record, buffer = given
    with np.errstate(all="ignore"):
        found = function(a, m, b, c, n, x, by_address(record), by_address(buffer))
    return [
        *map(float, found),
        *(array.astype(float).ravel().tolist() for array in (a, m, b, c, record.row, record.inside.table, buffer.row)),
    ]


def load(folder: Path, source: str, name: str):
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def plain(module, name):
    """Return a program in Python, and what it calls."""
    names = dict(vars(module))
    for one, value in vars(module).items():
        if hasattr(value, "py_func"):
            names[one] = type(value.py_func)(value.py_func.__code__, names)
    return names[name]


def by_numba(compiled, module):
    """Return the same program, compiled by Numba alone."""
    from kernling.compiler.decorators import Compiled
    from kernling.compiler.numba_backend import dispatcher_of

    class ByNumba(Compiled):
        dispatcher = property(lambda self: dispatcher_of(self, None))

    names = dict(vars(module))
    for one, value in vars(module).items():
        if isinstance(value, Compiled):
            copy = type(value.py_func)(value.py_func.__code__, names, value.py_func.__name__ + "_by_numba")
            names[one] = ByNumba(copy, copy, value.kind, value.options)
            names[one]._found = lambda kinds: None
    return names[compiled.py_func.__name__]


def main(seed: int, count: int, numba: int, most: int) -> list[str]:
    """Run programs; return descriptions of those that differ."""
    from kernling.compiler import by_address, compiling

    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        writers = [Writer(seed, number, most) for number in range(count)]
        sources = [writer.program() for writer in writers]
        for writer, source in zip(writers, sources, strict=True):
            module = load(Path(folder), HEAD + source, f"fuzzed_{seed}_{writer.name}")
            given = arguments(writer, module)
            compiled = getattr(module, writer.name)
            expected = outcome(plain(module, writer.name), copied(given), lambda record: record)
            found = {"compiled": outcome(compiled, copied(given), by_address)}
            if numba and int(writer.name[8:]) % numba == 0:
                found["by Numba"] = outcome(by_numba(compiled, module), copied(given), by_address)
            for how, result in found.items():
                if not all(map(same, result, expected)):
                    wrong.append(f"{source}\n# seed {seed}\n# in Python: {expected}\n# {how}: {result}\n")
            del sys.modules[module.__name__]
    expected_fallbacks = {writer.name for writer in writers if writer.is_left_to_numba}
    different = compiling.fallbacks.keys() ^ expected_fallbacks
    return wrong + [f"{name} is left to Numba: {compiling.fallbacks.get(name, 'no')}" for name in sorted(different)]


def same(found, expected) -> bool:
    return np.allclose(np.asarray(found), np.asarray(expected), rtol=1e-14, atol=0.0, equal_nan=True)


if __name__ == "__main__":
    differences = main(*map(int, sys.argv[1:5]))
    print("\n".join(differences) or "all the same")

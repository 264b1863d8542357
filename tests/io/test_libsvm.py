"""LIBSVM text: exact to the last digit against Python's float, equal to scikit-learn's reader, and honest about damage."""

import gzip
import io
import math
import os
import subprocess
import sys
import threading
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from kernling.io import libsvm, lines, stream


def values_of(tokens):
    text = "".join(f"{token} 1:{token}\n" for token in tokens).encode()
    X, y = zip(*libsvm.read(io.BytesIO(text), 1, False), strict=True)
    return np.concatenate([part.toarray()[:, 0] for part in X]), np.concatenate(y)


@st.composite
def numbers(draw):
    """Decimal numbers as text, of any length and shape, that float64 can hold."""
    whole = draw(st.text("0123456789", max_size=25))
    fraction = draw(st.text("0123456789", max_size=25))
    if not whole and not fraction:
        whole = "0"
    point = "." if fraction or draw(st.booleans()) else ""
    power = draw(st.one_of(st.just(""), st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-340, 280))))
    return draw(st.sampled_from(["", "+", "-"])) + whole + point + fraction + power


def same_bits(got, tokens):
    return got.tobytes() == np.array([float(token) for token in tokens]).tobytes()


@settings(max_examples=150, deadline=None)
@given(st.lists(numbers(), min_size=1, max_size=30))
def test_any_number_is_pythons_float(tokens):
    data, labels = values_of(tokens)
    assert same_bits(labels, tokens)
    assert same_bits(data + 0.0, [token if float(token) else "0" for token in tokens])  # -0 + 0 is 0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_shortest_text_of_a_float_gives_it_back(numbers):
    tokens = [repr(number) for number in numbers]
    assert same_bits(values_of(tokens)[1], tokens)


def test_hard_cases():
    tokens = [
        "9007199254740993",  # halfway between two floats: to the even one
        "9007199254740995",
        "9007199254740993.0000000000000000000000000001",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "4.9e-324",
        "1.7976931348623157e308",
        "1e22",
        "1e23",
        "8.5e22",
        "18446744073709551615",
        "18446744073709551616",
        "000000000000000000000000000000000001.5",
        "0.000000000000000000000000000000000000000000001",
        "1e-290",
        "9999999999999999999e285",
        "-0",
        ".5",
        "5.",
    ]
    assert same_bits(values_of(tokens)[1], tokens)


def test_random_numbers_near_halfway():
    rng = np.random.default_rng(0)
    tokens = [
        f"{int(m) * 2 + 1}.5e{q}"
        for m, q in zip(rng.integers(2**52, 2**53, 20_000), rng.integers(-30, 30, 20_000), strict=True)
    ]
    tokens += [f"{m}e{q}" for m, q in zip(rng.integers(1, 2**63, 50_000), rng.integers(-310, 280, 50_000), strict=True)]
    assert same_bits(values_of(tokens)[1], tokens)


def test_numbers_of_more_digits_than_fit():
    """Halfway between two floats to the last digit, and next to it, where only digits far behind decide; and any others."""
    rng = np.random.default_rng(1)
    floats = rng.standard_normal(3000) * 10.0 ** rng.integers(-20, 20, 3000)
    with localcontext(prec=200):
        middles = [
            (Decimal(a) + Decimal(b)) / 2 for a, b in zip(floats.tolist(), np.nextafter(floats, 0).tolist(), strict=True)
        ]
        tokens = [str(number) for middle in middles for number in (middle, middle * (1 + Decimal("1e-60")))]
    tokens += [f"{x:.40f}" for x in floats.tolist()] + [f"{x:.30e}" for x in floats.tolist()]
    assert same_bits(values_of(tokens)[1], tokens)
    slow = [libsvm._value(np.uint64(m), -20, False, 25)[1] for m in rng.integers(10**18, 9 * 10**18, 3000)]
    assert np.mean(slow) < 0.01  # the others do not wait for Python


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 9))
def test_equals_scikit_learn(seed, zero_based, chunk):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((13, 6)) * (rng.random((13, 6)) < 0.4)
    y = rng.integers(-3, 4, 13)
    file = io.BytesIO()
    dump_svmlight_file(X, y, file, zero_based=zero_based, comment="made up", query_id=rng.integers(0, 3, 13))
    text = file.getvalue()
    expected, labels = load_svmlight_file(io.BytesIO(text), n_features=6, zero_based=zero_based)
    rows = stream(io.BytesIO(text), format="libsvm", zero_based=zero_based, n_features=6, chunk=chunk)
    got, targets = rows.load()
    assert np.array_equal(got.toarray(), expected.toarray())
    assert np.array_equal(targets, labels)


def test_blocks_of_any_size_give_the_same_rows(monkeypatch):
    text = b"".join(b"%d 1:%d.25 7:1e-3 # %d\r\n\n" % (i % 3, i, i) for i in range(50))
    whole = stream(io.BytesIO(text), format="libsvm", n_features=7).load()
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(libsvm, "BLOCK", size)
        X, y = stream(io.BytesIO(text), format="libsvm", n_features=7).load()
        assert (whole[0] != X).nnz == 0
        assert np.array_equal(y, whole[1])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x 1:2", "'x' is not a number"),
        ("1,2 1:2", "'1,2' is not a number"),
        ("nan 1:2", "'nan' is not a number"),
        ("1_0 1:2", "'1_0' is not a number"),
        ("1 2", "'2' is not index:value"),
        ("1 2:", "'2:' is not index:value"),
        ("1 2: 3", "'2:' is not index:value"),
        ("1 2:inf", "'2:inf' is not index:value"),
        ("1 2:1e", "'2:1e' is not index:value"),
        ("1 2:.", "'2:.' is not index:value"),
        ("1 -2:1", "'-2:1' is not index:value"),
        ("1 qid:3 qid:4 1:1", "'qid:4' is not index:value"),
        ("1 0:1", "start at 1"),
        ("1 2:1 2:3", "not larger"),
        ("1 3:1 2:3", "not larger"),
        ("1 99999999999999999999:3", "too large"),
        ("1 1:1e999", "not finite"),
        ("1e400 1:1", "not finite"),
        ("1 9:1", "index 9 does not fit into 3 columns"),
        ("1 999999999:1", "more than 67108864 columns are taken for a mistake: correct it, or pass n_features=999999999"),
    ],
)
@pytest.mark.parametrize("block", [8, 1 << 20])
def test_a_damaged_line_is_named_after_the_rows_before_it(line, message, block, monkeypatch):
    monkeypatch.setattr(libsvm, "BLOCK", block)
    text = f"# head\n1 1:1\n\n-1 2:0.12345678901234567890123 # two\n{line}\n1 1:1\n".encode()
    rows = iter(stream(io.BytesIO(text), format="libsvm", n_features=3))
    assert next(rows)[1].tolist() == [1.0, -1.0]
    with pytest.raises(ValueError, match="line 5: ") as caught:
        next(rows)
    assert message in str(caught.value)


def test_columns_are_counted_over_the_whole_file(tmp_path):
    path = tmp_path / "wide.svm"
    path.write_text("1 1:1\n" * 3 + "-1 5:2 # 9:9 in a comment\n1 qid:77 2:1\n")
    chunks = list(stream(path, chunk=2))
    assert [X.shape for X, _ in chunks] == [(2, 5), (2, 5), (1, 5)]
    assert stream(path, zero_based=True).load()[0].shape == (5, 6)


def test_a_source_that_is_read_once_is_as_wide_as_its_first_chunk_says(monkeypatch):
    monkeypatch.setattr(libsvm, "BLOCK", 8)
    monkeypatch.setattr(libsvm, "CHUNK", 3)
    rows = iter(stream(io.BytesIO(b"1 1:1\n1 2:1\n1 1:1\n2 1:1\n1 3:1\n"), format="libsvm"))
    X, y = next(rows)
    assert X.shape == (4, 2)
    assert y.tolist() == [1, 1, 1, 2]
    with pytest.raises(ValueError, match="line 5: index 3 does not fit into 2 columns; pass the right n_features="):
        next(rows)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_named_pipe_is_read_once(compress, tmp_path):
    path = tmp_path / "rows.svm"
    os.mkfifo(path)
    text = b"".join(b"%d %d:1\n" % (i, i % 7 + 1) for i in range(40_000))
    threading.Thread(target=path.write_bytes, args=[compress(text)]).start()
    rows = stream(path)
    X, y = rows.load()
    assert X.shape == (40_000, 7)
    assert np.array_equal(y, np.arange(40_000))
    with pytest.raises(ValueError, match="only once"):
        iter(rows)


@pytest.mark.parametrize("index", [2_000_000_000, 3_000_000_000])
@pytest.mark.parametrize("piped", [False, True])
def test_a_damaged_index_makes_no_columns(index, piped, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(f"1 1:1\n-1 5:1\n1 {index}:1\n1 1:1\n")
    with open(path, "rb") as file:
        rows = iter(stream(file if piped else path, dense=True))
        assert next(rows)[0].shape == (2, 5)
        with pytest.raises(ValueError, match=f"line 3: .*{index}"):
            next(rows)


def test_dense_rows_that_no_memory_holds_are_refused(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n-1 40000000:1\n" * 20)
    assert stream(path, dense=True, chunk=1).take(2).load()[0].shape == (2, 40_000_000)
    with pytest.raises(ValueError, match="40 rows of 40000000 columns take 11 GiB"):
        stream(path, dense=True).load()
    assert stream(path).load()[0].shape == (40, 40_000_000)


def test_a_mark_before_the_text_is_skipped(tmp_path):
    (tmp_path / "rows").write_bytes(b"\xef\xbb\xbf1 1:2\n-1 1:3\n")
    X, y = stream(tmp_path / "rows").load()
    assert X.toarray().tolist() == [[2.0], [3.0]]
    assert y.tolist() == [1.0, -1.0]


def test_an_endless_line_is_refused(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 1000)
    monkeypatch.setattr(libsvm, "BLOCK", 100)
    with pytest.raises(ValueError, match="longer than 1000 bytes"):
        stream(io.BytesIO(b"1" * 5000), format="libsvm").load()


def test_leading_bits_are_those_of_the_powers_of_five():
    for q in (-290, -28, -27, -1, 0, 1, 55, 56, 285):
        bits = libsvm._leading_bits(q)
        assert bits.bit_length() == 128
        assert math.isclose(math.log2(bits) - 127, (q * math.log2(5)) % 1.0, abs_tol=1e-9)


def test_without_compiled_code_the_numbers_are_the_same():
    """NumPy's bytes wrap at 256 where compiled ones do not."""
    text = b"1234 1:12.5 300:1.2345678901234567e-5\n-1 257:98765432109876543e-120 # 9:9\n"
    program = (
        "import io\nfrom kernling.io import libsvm\n"
        f"(X, y), = libsvm.read(io.BytesIO({text!r}), 300, False)\n"
        "print(y.tolist(), X.indices.tolist(), X.data.tolist())"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    expected = [12.5, 1.2345678901234567e-5, 98765432109876543e-120]
    assert out.stdout.strip() == f"[1234.0, -1.0] [0, 299, 256] {expected}"

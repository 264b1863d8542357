"""Named data sets: counted against what is published, and fetched from a local server."""

import gzip
import hashlib
import http.server
import threading
from functools import partial

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from kernling.papers import dataset, dataset_names, datasets, textons
from kernling.papers.catalogue import CATALOGUE, Entry, File

CLASSES = {
    ("a9a", "train"): {-1: 24_720, 1: 7_841},
    ("a9a", "test"): {-1: 12_435, 1: 3_846},
    ("w8a", "train"): {-1: 48_270, 1: 1_479},
    ("w8a", "test"): {-1: 14_497, 1: 454},
    ("cod-rna", "train"): {-1: 39_690, 1: 19_845},
    ("ijcnn1", "train"): {-1: 45_137, 1: 4_853},
    ("ijcnn1", "test"): {-1: 82_989, 1: 8_712},
    ("diabetes", "train"): {-1: 268, 1: 500},
    ("covtype", "train"): {1: 211_840, 2: 283_301, 3: 35_754, 4: 2_747, 5: 9_493, 6: 17_367, 7: 20_510},
    ("mnist", "test"): dict(enumerate((980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009))),
}
RANGES = {
    "cod-rna": (-1.0, 1.0),
    "covtype": (0.0, 1.0),
    "mnist": (0.0, 1.0),
    "kddcup99": (0.0, 1.0),
    "nycflights13": (0.0, 1.0),
}
SLOW = {"covtype", "kddcup99", "mnist", "nycflights13"}


def loaded(name, part="train"):
    if any(datasets._find(file) is None for one in ("train", part) for file in CATALOGUE[name].parts[one][1]):
        pytest.skip(f"the files of {name} are not in KERNLING_DATA")
    X, y = dataset(name).load(part)
    assert X.shape == (dataset(name).rows[part], dataset(name).n_features)
    if name in RANGES:
        assert (X.min(), X.max()) == RANGES[name]
    return X, y


def marked(*values):
    return pytest.param(*values, marks=[pytest.mark.long] if values[0] in SLOW else [])


@pytest.mark.parametrize(("name", "part"), [marked(*key) for key in CLASSES])
def test_classes_are_as_published(name, part):
    _, y = loaded(name, part)
    labels, counts = np.unique(y, return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == CLASSES[name, part]


def test_casp():
    X, y = loaded("casp")
    assert np.allclose(X.mean(axis=0), 0, atol=1e-9)
    assert np.allclose(X.std(axis=0), 1)
    assert (y.min(), y.max()) == (0.0, 1.0)


@pytest.mark.long
def test_nycflights():
    _, y = loaded("nycflights13")
    assert len(y) == 273_853
    minutes = dataset("nycflights13-minutes").load()[1]
    assert np.array_equal(y, np.where(minutes > 15, 1, -1))


@pytest.mark.long
def test_brodatz():
    """Nearest neighbours tell the textures apart, and the same rows come again."""
    X, y = loaded("brodatz")
    assert np.allclose(X.sum(axis=1), 1.0)
    assert np.bincount(y, minlength=13).min() > 600
    X_test, y_test = dataset("brodatz").load("test")
    model = KNeighborsClassifier(1).fit(X, y)
    assert model.score(X_test, y_test) > 0.8  # POLK, table 3: 95.5 %


def test_texton_histograms_tell_stripes_from_dots():
    x = np.arange(160)
    stripes = np.tile(np.sin(x / 2.0), (160, 1))
    dots = np.sin(x / 2.0)[:, None] * np.sin(x / 2.0)
    X, y = textons.histograms([stripes, dots, stripes.T], 12, 24, 300)
    assert np.allclose(X.sum(axis=1), 1.0)
    assert KNeighborsClassifier(1).fit(X[:200], y[:200]).score(X[200:], y[200:]) == 1.0
    again = textons.histograms([stripes, dots, stripes.T], 12, 24, 300)
    assert np.array_equal(again[0], X)


@pytest.mark.long
def test_kddcup():
    _, y = loaded("kddcup99")
    labels, counts = np.unique(y, return_counts=True)
    assert len(labels) == 23
    assert counts[labels == "normal."] == 97_278


@pytest.mark.long
def test_two_classes_of_seven():
    _, y = loaded("covtype")
    _, two = dataset("covtype", positive=2).load()
    assert np.array_equal(two, np.where(y == 2, 1, -1))


def test_a_seed_is_numpys_permutation():
    _, y = loaded("diabetes")
    order = np.random.default_rng(4).permutation(len(y))
    rows = dataset("diabetes").stream(seed=4)
    assert np.array_equal(rows.load()[1], y[order])
    assert rows.info["sha256"] == {"diabetes_scale": CATALOGUE["diabetes"].parts["train"][1][0].sha256}
    assert rows.info["order"] == 4


def test_all_wanted_names_are_known():
    wanted = (
        "a9a w8a w7a cod-rna ijcnn1 covtype poker kddcup99 nycflights13 airlines casp slice year mnist usps german diabetes"
    )
    assert set(wanted.split()) | {"rcv1", "brodatz"} <= set(dataset_names())
    for name in dataset_names():
        entry = CATALOGUE[name]
        assert "train" in entry.parts
        assert entry.home.startswith("http")
        assert all(file.sha256 or not file.exact for _, listed in entry.parts.values() for file in listed)


# ---------------------------------------------------------------------- fetching

TEXT = b"".join(b"%d 1:%d 2:0.5\n" % (1 if i % 3 else -1, i) for i in range(100))


class Server(http.server.BaseHTTPRequestHandler):
    """Answers with the bytes of ``pages``; a page that starts with "short" promises more than it sends."""

    def __init__(self, pages, log, *arguments):
        self.pages, self.asked = pages, log
        super().__init__(*arguments)

    def do_GET(self):
        self.asked.append(self.path)
        page = self.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        self.send_response(200)
        if not self.path.startswith("/endless"):
            self.send_header("Content-Length", str(len(page) + (100 if self.path.startswith("/short") else 0)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A local server, an empty cache, and a way to register a data set on it."""
    pages, log = {}, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, pages, log))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("KERNLING_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KERNLING_DATA", raising=False)

    def register(path, page, sha256=None, exact=False):
        pages[path] = page
        file = File("tiny", f"http://127.0.0.1:{server.server_port}{path}", sha256, exact)
        monkeypatch.setitem(CATALOGUE, "tiny", Entry("classification", 2, "http://home", "libsvm", {"train": (100, (file,))}))
        return log

    yield register
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("path", ["/tiny", "/tiny.gz", "/endless/tiny.gz"])
def test_downloads_once_and_checks(site, tmp_path, path):
    page = gzip.compress(TEXT) if path.endswith("gz") else TEXT
    log = site(path, page, hashlib.sha256(TEXT).hexdigest(), exact=True)
    for _ in range(2):
        X, y = dataset("tiny").load()
        assert X.shape == (100, 2)
        assert y.tolist() == [1 if i % 3 else -1 for i in range(100)]
    assert log == [path]
    assert [p.name for p in (tmp_path / "cache" / "data").iterdir()] == [path.split("/")[-1]]


@pytest.mark.parametrize(
    ("path", "page", "problem"),
    [
        ("/tiny", TEXT + b"1 1:1\n", "SHA-256"),
        ("/short/tiny", TEXT, "ended after|IncompleteRead"),
        ("/endless/tiny.gz", gzip.compress(TEXT)[:-20], "truncated"),
        ("/tiny", None, "404"),
    ],
)
def test_a_bad_answer_leaves_nothing_and_says_what_to_put_where(site, tmp_path, path, page, problem):
    site(path, page, hashlib.sha256(TEXT).hexdigest(), exact=True)
    with pytest.raises(FileNotFoundError, match=problem) as caught:
        dataset("tiny").load()
    assert f"put it, compressed or not, into {tmp_path / 'cache' / 'data'}" in str(caught.value)
    assert list((tmp_path / "cache" / "data").iterdir()) == []


def test_no_network(site, monkeypatch, tmp_path):
    monkeypatch.setenv("KERNLING_DATA", str(tmp_path))
    file = File("tiny", "http://127.0.0.1:9/tiny")
    monkeypatch.setitem(CATALOGUE, "tiny", Entry("classification", 2, "http://home", "libsvm", {"train": (100, (file,))}))
    with pytest.raises(FileNotFoundError, match=f"get tiny from http://127.0.0.1:9/tiny .* into {tmp_path}"):
        dataset("tiny").load()
    monkeypatch.setitem(
        CATALOGUE, "tiny", Entry("classification", 2, "http://home", "libsvm", {"train": (100, (File("tiny"),))})
    )
    with pytest.raises(FileNotFoundError, match="get tiny from http://home"):
        dataset("tiny").load()
    (tmp_path / "tiny.xz").write_bytes(gzip.compress(TEXT))  # the content tells the compression, not the name
    assert dataset("tiny").load()[0].shape == (100, 2)
    (tmp_path / "tiny.xz").write_bytes(TEXT[: TEXT.rindex(b"\n", 0, 600) + 1])
    with pytest.raises(ValueError, match="should have 100 rows of 2 columns"):
        dataset("tiny").load()
    (tmp_path / "tiny.xz").write_bytes(TEXT + b"1 2\n")
    with pytest.raises(ValueError, match="the files of tiny are damaged: line 101"):
        dataset("tiny").load()


def test_errors():
    with pytest.raises(ValueError, match="name must be one of"):
        dataset("iris")
    with pytest.raises(ValueError, match="only for classification, but casp is a regression data set"):
        dataset("casp", positive=1)
    with pytest.raises(ValueError, match="part of a9a must be one of"):
        dataset("a9a").load("validation")


def test_a_damaged_idx_header_is_refused():
    from kernling.papers import recipes

    good = np.array([0x0803, 2, 2, 2], ">i4").tobytes() + bytes(8)
    assert len(recipes._idx(good, 3)) == 8
    for bad in (good[:-1], good[:10], np.array([0x0803, 2**30, 2**30, 2**30], ">i4").tobytes() + bytes(8)):
        with pytest.raises(ValueError, match="IDX"):
            recipes._idx(bad, 3)


# ---------------------------------------------------------------------- files that a user may have, made up

RNG = np.random.default_rng(0)


def libsvm_text(rows, columns, targets):
    lines = (f"{target} " + " ".join(f"{j + 1}:{v:.3f}" for j, v in enumerate(RNG.normal(size=columns))) for target in targets)
    return "\n".join(line for line, _ in zip(lines, range(rows), strict=True)) + "\n"


def connection(kind, word):
    """A line of KDD Cup 99: 41 columns, of which the second to fourth are words, and the label."""
    return ",".join(["0", word, "http", "SF", *map(str, RNG.integers(0, 9, 37)), kind])


MADE_UP = {
    "kdd08": {
        "Features.txt": "\n".join("  ".join(f"{v:e}" for v in RNG.normal(size=117)) for _ in range(40)) + "\n",
        "Info.txt": "\n".join(f"{1 if i % 8 == 0 else -1} " + " ".join(["7"] * 10) for i in range(40)) + "\n",
    },
    "year": {
        "YearPredictionMSD": libsvm_text(60, 90, range(1922, 1982)),
        "YearPredictionMSD.t": libsvm_text(20, 90, range(1990, 2010)),
    },
    "cod-rna": {
        "cod-rna": libsvm_text(50, 8, [1, -1] * 25),
        "cod-rna.t": libsvm_text(30, 8, [1, -1, -1] * 10),
    },
    "kddcup99-full": {
        "kddcup.data": "\n".join(connection(*pair) for pair in [("normal.", "tcp"), ("smurf.", "icmp"), ("rare.", "udp")] * 20)
        + "\n"
    },
}


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """Files of the right form with few rows, and a catalogue that expects as many."""
    monkeypatch.setenv("KERNLING_DATA", str(tmp_path))
    for name, contents in MADE_UP.items():
        for file, text in contents.items():
            (tmp_path / file).write_text(text)
        parts, columns = {}, 38 + 3 + 1 + 1 if name == "kddcup99-full" else CATALOGUE[name].columns
        for part, (_, files) in CATALOGUE[name].parts.items():
            if all(file.name in contents for file in files):
                parts[part] = contents[files[0].name].count("\n"), tuple(file._replace(sha256=None) for file in files)
        monkeypatch.setitem(CATALOGUE, name, CATALOGUE[name]._replace(parts=parts, columns=columns))
    return tmp_path


def test_kdd08_from_its_two_files(made_up):
    X, y = dataset("kdd08").load()
    assert X.shape == (40, 117)
    assert (X.min(), X.max()) == (0.0, 1.0)
    assert np.array_equal(y, np.where(np.arange(40) % 8 == 0, 1, -1))
    (made_up / "Info.txt").write_text("1 2\n" * 39)
    with pytest.raises(ValueError, match=r"40 lines, and Info[.]txt 39"):
        dataset("kdd08").load()


def test_year_and_cod_rna_have_the_rows_of_both_files(made_up):
    X, y = dataset("year").load("all")
    assert X.shape == (80, 90)
    assert y[:60].max() == 1.0, "the target's scale is that of the training part"
    both, labels = dataset("cod-rna").load("train+test")
    assert both.shape == (80, 8)
    assert np.array_equal(labels[50:], dataset("cod-rna").load("test")[1])
    with pytest.raises(ValueError, match=r"must be one of 'train', 'test', 'all', not 'train\+other'"):
        dataset("cod-rna").load("train+other")


def test_all_of_kdd_cup_99(made_up):
    X, y = dataset("kddcup99-full").load()
    assert X.shape == (60, 43)
    assert (X.min(), X.max()) == (0.0, 1.0)
    assert sorted(set(y)) == ["normal.", "rare.", "smurf."]

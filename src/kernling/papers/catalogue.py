"""The named data sets: their sources, contents and preparation.

``sha256`` is of the uncompressed content.  ``exact`` means that it is that of the published file; otherwise it is that of a
copy with the same numbers in a different format, and another checksum is not an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class File(NamedTuple):
    name: str  # uncompressed
    url: str | None = None  # None: to be downloaded by hand from the data set's home
    sha256: str | None = None
    exact: bool = False


class Entry(NamedTuple):
    task: str  # "classification" or "regression"
    columns: int  # of X, as prepared
    home: str  # the page that describes it
    recipe: str  # a function of recipes.py
    parts: Mapping[str, tuple[int, tuple[File, ...]]]  # part: (rows, files)
    options: dict = {}  # for the recipe


_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_BRODATZ = "https://sipi.usc.edu/database/database.php?volume=textures"
_KDD08 = "https://www.kdd.org/kdd-cup/view/kdd-cup-2008/Data"
_ASA = "https://doi.org/10.7910/DVN/HG7NV7"
_NYC = "https://github.com/tidyverse/nycflights13"


def _libsvm(kind: str, columns: int, parts: dict[str, tuple[int, File]], **options) -> Entry:
    task = "regression" if kind == "regression" else "classification"
    listed = {
        part: (rows, (file._replace(url=_LIBSVM + kind + "/" + (file.url or file.name)),))
        for part, (rows, file) in parts.items()
    }
    return Entry(task, columns, _LIBSVM, "libsvm", listed, options)


def _packed(name: str, sha256: str | None = None) -> File:
    """Return a file that LIBSVM's site offers compressed."""
    return File(name, name + ".bz2", sha256)


_FLIGHTS = {
    "train": (
        273_853,
        (
            File("nycflights13_flights.csv", None, "563db8f117faf6ffd76aa868099df37dfa78dc17b5ac6d3d9ea6476e051a0bc4"),
            File("nycflights13_planes.csv", None, "778962edec8339f6f6edb1d6506869f61cab573eda03d7e162d2899c76d04c1a"),
        ),
    )
}
_TEXTURES = File("brodatz13.tar", None, "e72797bc441e4fbf2ee35860b7552b87997a87e0bb4174da6f5f8db057e88198")
_AIRLINES = {"train": (5_929_413, (File("2008.csv"), File("plane-data.csv")))}

CATALOGUE: dict[str, Entry] = {
    "a9a": _libsvm(
        "binary",
        123,
        {
            "train": (32_561, File("a9a", None, "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906", True)),
            "test": (16_281, File("a9a.t", None, "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9", True)),
        },
        dense=False,
    ),
    "w8a": _libsvm(
        "binary",
        300,
        {
            "train": (49_749, File("w8a", None, "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2", True)),
            "test": (14_951, File("w8a.t", None, "618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde")),
        },
        dense=False,
    ),
    "w7a": _libsvm("binary", 300, {"train": (24_692, File("w7a")), "test": (25_057, File("w7a.t"))}, dense=False),
    "cod-rna": _libsvm(
        "binary",
        8,
        {
            "train": (59_535, File("cod-rna", None, "b01d06f01717a22e37cf501700fcab32535a0fa7ec4e4bf30e181ac0cef7b1c8")),
            "test": (271_617, File("cod-rna.t")),
            "validation": (157_413, File("cod-rna.r")),
        },
        scale=(-1.0, 1.0),
    ),
    "ijcnn1": _libsvm(
        "binary",
        22,
        {
            "train": (49_990, _packed("ijcnn1", "7fe291672c3fefe6a7e3c51529becd23f0e985ba05ffb8d53c9c648c1e91cc19")),
            "test": (91_701, _packed("ijcnn1.t", "e7b0bbd518641980dc322746c6bc59d019d3153934e6258e48f9d8cfae2c4bb8")),
        },
    ),
    "poker": _libsvm(
        "multiclass", 10, {"train": (25_010, _packed("poker")), "test": (1_000_000, _packed("poker.t"))}, scale=(0.0, 1.0)
    ),
    "usps": _libsvm("multiclass", 256, {"train": (7_291, _packed("usps")), "test": (2_007, _packed("usps.t"))}),
    "german": _libsvm("binary", 24, {"train": (1_000, File("german.numer_scale"))}),
    "diabetes": _libsvm(
        "binary",
        8,
        {"train": (768, File("diabetes_scale", None, "0c07eb4c49e7a8ffb9c9f25095ac3022df2ca85b0dcb7d294c3ddea69f392cba"))},
    ),
    "rcv1": _libsvm(
        "binary",
        47_236,
        {"train": (20_242, _packed("rcv1_train.binary")), "test": (677_399, _packed("rcv1_test.binary"))},
        dense=False,
    ),
    "year": _libsvm(
        "regression",
        90,
        {"train": (463_715, _packed("YearPredictionMSD")), "test": (51_630, _packed("YearPredictionMSD.t"))},
        standardise=True,
    ),
    "brodatz": Entry(
        "classification",
        256,
        _BRODATZ,
        "brodatz",
        {"train": (10_000, (_TEXTURES,)), "test": (5_000, (_TEXTURES,))},
        {"rows": (10_000, 5_000)},
    ),
    "covtype": Entry(
        "classification",
        54,
        "https://archive.ics.uci.edu/dataset/31/covertype",
        "numeric_csv",
        {
            "train": (
                581_012,
                (
                    File(
                        "covtype.data",
                        _UCI + "covtype/covtype.data.gz",
                        "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945",
                    ),
                ),
            )
        },
        {"header": False, "target": -1, "classes": True},
    ),
    "casp": Entry(
        "regression",
        9,
        "https://archive.ics.uci.edu/dataset/265/physicochemical+properties+of+protein+tertiary+structure",
        "numeric_csv",
        {
            "train": (
                45_730,
                (
                    File(
                        "CASP.csv", _UCI + "00265/CASP.csv", "4277cfcb4e91a181746cbc654f001b57951c9e6a80f4f795fdb5c807e0848f40"
                    ),
                ),
            )
        },
        {"header": True, "target": 0},
    ),
    "slice": Entry(
        "regression",
        384,
        "https://archive.ics.uci.edu/dataset/206/relative+location+of+ct+slices+on+axial+axis",
        "numeric_csv",
        {"train": (53_500, (File("slice_localization_data.csv", _UCI + "00206/slice_localization_data.zip"),))},
        {"header": True, "target": -1, "leave_out": ["patientId"]},
    ),
    "kddcup99": Entry(
        "classification",
        118,
        "https://archive.ics.uci.edu/dataset/130/kdd+cup+1999+data",
        "kddcup",
        {
            "train": (
                494_021,
                (
                    File(
                        "kddcup.data_10_percent",
                        _UCI + "kddcup99-mld/kddcup.data_10_percent.gz",
                        "f8c8267ebcd9c0ed1fd7d6277fe5bfff8732e9b7db8e61b873542b2a534b6f9a",
                    ),
                ),
            )
        },
    ),
    "kddcup99-full": Entry(
        "classification",
        122,
        "https://archive.ics.uci.edu/dataset/130/kdd+cup+1999+data",
        "kddcup",
        {"train": (4_898_431, (File("kddcup.data", _UCI + "kddcup99-mld/kddcup.data.gz"),))},
    ),
    "kdd08": Entry("classification", 117, _KDD08, "kdd08", {"train": (102_294, (File("Features.txt"), File("Info.txt")))}),
    "nycflights13": Entry("classification", 8, _NYC, "nycflights", _FLIGHTS, {"late": 15.0}),
    "nycflights13-minutes": Entry("regression", 8, _NYC, "nycflights", _FLIGHTS),
    "airlines": Entry("classification", 8, _ASA, "airlines", _AIRLINES, {"late": 15.0}),
    "airlines-minutes": Entry("regression", 8, _ASA, "airlines", _AIRLINES),
    "mnist": Entry(
        "classification",
        784,
        "http://yann.lecun.com/exdb/mnist/",
        "idx",
        {
            "train": (
                60_000,
                (
                    File(
                        "mnist-train-images-idx3-ubyte",
                        _MNIST + "train-images-idx3-ubyte.gz",
                        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                        True,
                    ),
                    File(
                        "mnist-train-labels-idx1-ubyte",
                        _MNIST + "train-labels-idx1-ubyte.gz",
                        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                        True,
                    ),
                ),
            ),
            "test": (
                10_000,
                (
                    File(
                        "mnist-t10k-images-idx3-ubyte",
                        _MNIST + "t10k-images-idx3-ubyte.gz",
                        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                        True,
                    ),
                    File(
                        "mnist-t10k-labels-idx1-ubyte",
                        _MNIST + "t10k-labels-idx1-ubyte.gz",
                        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                        True,
                    ),
                ),
            ),
        },
    ),
}

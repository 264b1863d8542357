"""How tests are given to processes: those of a method to one of them."""

from types import SimpleNamespace

import pytest

import scheduling

IDS = [
    "tests/methods/test_avm.py::test_a9a",
    "tests/test_cli.py::test_demo",
    "tests/test_checks.py::test_oracle[BSGDClassifier-binary]",
    "tests/test_checks.py::test_scikit_learn[AVMClassifier()-check_fit]",
    "tests/test_cli.py::test_help",
]


@pytest.mark.parametrize(
    ("nodeid", "scope"),
    [
        ("tests/test_checks.py::test_oracle[AVMClassifier-binary]", "avm"),
        ("tests/compat/test_to_river.py::test_rivers_own_checks[SPAOneClass0]", "spa"),
        ("tests/test_checks.py::test_learner[bound-BSGDRegressor-regression]", "bsgd"),
        ("tests/test_checks.py::test_scikit_learn[OGDClassifier(random_state=0)-check_fit]", "ogd"),
        ("tests/methods/test_avm.py::test_a9a", "avm"),
        ("src/kernling/methods/avm.py::kernling.methods.avm.AVMClassifier", "avm"),
        ("tests/baselines/test_baselines.py::test_bogd", "tests/baselines/test_baselines.py"),
        ("tests/test_cli.py::test_help[MyAVMClassifier]", "tests/test_cli.py"),
        ("src/kernling/demo.py::kernling.demo", "src/kernling/demo.py"),
    ],
)
def test_scopes(nodeid, scope):
    assert scheduling.scope_of(nodeid) == scope


class Process:
    """What a scheduler sees of one."""

    shutting_down = False

    def __init__(self, number):
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.tests = []

    def send_runtest_some(self, indices):
        self.tests += [IDS[i] for i in indices]

    def shutdown(self):
        self.shutting_down = True


def test_a_method_and_a_file_stay_with_one_process(pytestconfig, monkeypatch):
    monkeypatch.setattr(pytestconfig.option, "tx", ["2*popen"])
    scheduler = scheduling.ByMethod(pytestconfig, None)
    processes = [Process(number) for number in range(2)]
    for process in processes:
        scheduler.add_node(process)
        scheduler.add_node_collection(process, IDS)
    scheduler.schedule()
    while not all(process.shutting_down for process in processes):
        for process in processes:
            for nodeid in list(process.tests):
                scheduler.mark_test_complete(process, IDS.index(nodeid))
    assert sorted(processes[0].tests + processes[1].tests) == sorted(IDS)
    for scope in map(scheduling.scope_of, IDS):
        owners = [process for process in processes if scope in map(scheduling.scope_of, process.tests)]
        assert len(owners) == 1


def test_methods_come_first_and_examples_last():
    ordered = sorted([*IDS, "src/kernling/demo.py::kernling.demo"], key=scheduling.turn_of)
    assert [scheduling.scope_of(nodeid) for nodeid in ordered] == [
        "avm",
        "avm",
        "bsgd",
        "tests/test_cli.py",
        "tests/test_cli.py",
        "src/kernling/demo.py",
    ]

"""kernling export."""

import json

import numpy as np
import onnxruntime
import pytest
from typer.testing import CliRunner

import kernling as kl
from kernling.cli.commands import app

X = np.random.default_rng(0).normal(size=(200, 2))
Y = np.where(X[:, 0] > 0.0, "right", "left")


@pytest.fixture(autouse=True)
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = kl.AVMClassifier(delta=0.5).fit(X, Y)
    kl.save(model, "model.kern")
    return model


def call(*arguments, code=0):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["export", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_the_name_of_the_file_says_the_format(model):
    assert "model.onnx written" in call("model.kern", "model.onnx")
    labels = onnxruntime.InferenceSession("model.onnx").run(["label"], {"rows": X})[0]
    assert labels.tolist() == model.predict(X).tolist()
    call("model.kern", "model.json")
    with open("model.json") as file:
        assert json.load(file)["output"]["classes"] == ["left", "right"]


def test_other_formats_are_refused():
    assert "must end in .onnx or .json" in call("model.kern", "model.pmml", code=2)


def test_what_cannot_be_exported_is_one_line(tmp_path):
    words = [{"word": f"word {i % 90}"} for i in range(200)]
    kl.save(kl.StreamPipeline.auto(kl.AVMClassifier(delta=0.5)).partial_fit(words, Y), "words.kern")
    output = call("words.kern", "words.onnx", code=1)
    assert output.startswith("error: column 'word' has categories that are hashed")
    assert len(output.splitlines()) == 1
    assert not (tmp_path / "words.onnx").exists()

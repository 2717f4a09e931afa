"""lbc.train is `lbc train`: the same run, the same errors; callbacks see it and may end it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

import lbc
import lbc.api
from lbc.cli import main
from lbc.errors import UserError
from lbc.parameters import newest

TINY = {
    "frames": 300,
    "seed": 5,
    "show": False,
    "run": {"reports": 3, "report_seconds": 1e9, "threads": 1},
    "actor.num_envs": 8,
    "buffer.batch_size": 4,
}
AS_WORDS = ["--frames", "300", "--seed", "5", "--set", "run.reports=3", "run.report_seconds=1e9"]
AS_WORDS += ["run.threads=1", "actor.num_envs=8", "buffer.batch_size=4"]


def timeless(path):
    """What a run reported, without what depends on the clock."""
    reports = lbc.load_run(path).reports
    changing = ("seconds", "frames_per_second", "time")
    return [{key: value for key, value in report.items() if key not in changing} for report in reports]


def test_it_leaves_the_same_run_as_the_command(tmp_path, capsys):
    threads = torch.get_num_threads()
    result = lbc.train("catch", out=tmp_path / "python", **TINY)
    assert capsys.readouterr().out == "", "show=False prints nothing"
    assert main(["train", "catch", *AS_WORDS, "--out", str(tmp_path / "command")]) == 0
    names = [{path.name for path in (tmp_path / one).iterdir()} for one in ("python", "command")]
    assert names[0] == names[1]
    texts = [(tmp_path / one / "config.toml").read_text() for one in ("python", "command")]
    assert texts[0] == texts[1]
    assert timeless(tmp_path / "python") == timeless(tmp_path / "command")
    assert result.summary == json.loads((result.path / "summary.json").read_text())
    assert len(result.history()) == len(timeless(result.path)) and result.agent().frames >= 300
    assert torch.get_num_threads() == threads


def test_a_configuration_and_a_default_directory_in_another_thread(tmp_path, monkeypatch, catch):
    """Notebooks run cells where they like; signals belong to the main thread alone."""
    monkeypatch.chdir(tmp_path)
    config, found = catch.agent().config, []

    def work():
        found.extend(lbc.train(config, **TINY, learner={"learning_rate": 1e-4}) for _ in range(2))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    paths = [result.path for result in found]
    assert len(set(paths)) == 2 and all(str(path).startswith("runs/catch-s5-") for path in paths)
    assert lbc.load_run(paths[1]).config["learner"]["learning_rate"] == 1e-4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"preset": "katch"}, "Did you mean 'catch'?"),
        ({"frames": 0}, "run.frames is 0, but must be at least 1"),
        ({"frames": 1.5}, "run.frames is 1.5, but must be a whole number"),
        ({"frames": "5X"}, "--frames is '5X'"),
        ({"frames": 9, "minutes": 1.0}, "contradict"),
        ({"learner": {"learning_rte": 1}}, "Did you mean 'learning_rate'?"),
        ({"learnr": {"learning_rate": 1}}, "Did you mean 'learner'?"),
        ({"learning_rate": 1}, "'learning_rate' is no option of lbc.train"),
        ({"callbacks": [print]}, "a callback must be an lbc.Callback, not a builtin"),
        ({"init": "nowhere"}, "run.init is 'nowhere', but there is no such directory"),
        ({"run": {"sinks": ["tensorbord"]}}, "Did you mean 'tensorboard'?"),
    ],
)
def test_mistakes_are_told_in_a_sentence_and_leave_nothing(options, sentence, tmp_path):
    with pytest.raises(UserError, match=sentence.replace("?", r"\?")):
        lbc.train(**{"preset": "catch", "out": tmp_path / "run", "show": False} | options)
    assert not (tmp_path / "run").exists()


class Listening(lbc.Callback):
    def __init__(self):
        self.reports, self.checkpoints, self.end = [], [], None

    def on_report(self, metrics):
        self.reports.append(metrics)

    def on_checkpoint(self, path):
        assert (path / "manifest.json").exists()
        self.checkpoints.append(path)

    def on_end(self, summary):
        self.end = summary


def test_callbacks_hear_everything(tmp_path):
    one, other = Listening(), Listening()
    result = lbc.train("catch", out=tmp_path / "run", callbacks=[one, other], **TINY)
    assert one.reports == other.reports == lbc.load_run(result.path).reports
    assert one.end == result.summary and one.end["outcome"] == "finished"
    assert one.checkpoints[-1].parent == result.path / "checkpoints"


def test_a_callback_may_end_the_run_which_can_go_on(tmp_path):
    class Enough(Listening):
        def on_report(self, metrics):
            super().on_report(metrics)
            return metrics["frames"] >= 100

    enough = Enough()
    result = lbc.train("catch", out=tmp_path / "run", callbacks=[enough], **TINY)
    assert enough.end["outcome"] == result.summary["outcome"] == "interrupted"
    assert 100 <= result.summary["frames"] < 300
    whole = lbc.train("catch", out=tmp_path / "run", **TINY)  # the same again: it goes on
    assert whole.summary["outcome"] == "finished" and whole.summary["frames"] >= 300
    with pytest.raises(UserError, match="has ended"):
        lbc.resume(tmp_path / "run")
    longer = lbc.resume(tmp_path / "run", frames=500, show=False)
    assert longer.summary["outcome"] == "finished" and longer.summary["frames"] >= 500
    with pytest.raises(UserError, match="already holds a run"):
        lbc.train("catch", out=tmp_path / "run", **TINY)


@pytest.mark.parametrize("when", ["on_report", "on_checkpoint", "on_end"])
def test_an_exception_in_a_callback_is_raised_after_a_valid_checkpoint(when, tmp_path):
    class Clumsy(lbc.Callback):
        pass

    def fail(self, said):
        raise ZeroDivisionError("clumsy")

    setattr(Clumsy, when, fail)
    other = Listening()
    with pytest.raises(ZeroDivisionError, match="clumsy"):
        lbc.train("catch", out=tmp_path / "run", callbacks=[Clumsy(), other], **TINY)
    checkpoint, complaints = newest(tmp_path / "run" / "checkpoints")
    assert checkpoint is not None and not complaints
    assert (tmp_path / "run" / "summary.json").exists()
    if when == "on_report":
        assert checkpoint.frames < 300 and lbc.resume(tmp_path / "run", show=False).summary["frames"] >= 300


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_signal_ends_the_run_properly_and_is_raised(number, raised, tmp_path):
    class Interrupting(lbc.Callback):
        sent = False

        def on_report(self, metrics):  # once: a second signal, at the last report, would be an order
            if not self.sent:
                self.sent = True
                os.kill(os.getpid(), number)

    handler = signal.getsignal(number)
    with pytest.raises(raised):
        lbc.train("catch", out=tmp_path / "run", callbacks=[Interrupting()], **TINY)
    assert signal.getsignal(number) is handler
    record = lbc.load_run(tmp_path / "run")
    assert record.summary["outcome"] == "interrupted" and record.summary["frames"] < 300


def test_a_tracker_that_cannot_be_reached_does_not_end_training(tmp_path, monkeypatch):
    """A package with MLflow's interface, whose server is away."""
    (tmp_path / "mlflow.py").write_text("def MlflowClient():\n    raise ConnectionError('no route')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mlflow", raising=False)
    options = TINY | {"run": TINY["run"] | {"sinks": ["mlflow:comparison"]}}
    with pytest.warns(UserWarning, match=r"mlflow takes no further report of this run \(no route\)") as said:
        result = lbc.train("catch", out=tmp_path / "run", **options)
    sys.modules.pop("mlflow")
    assert result.summary["outcome"] == "finished" and len(said) == 1
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_fine_tuning_begins_where_the_other_run_ended(catch, tmp_path):
    """The first evaluation, before anything could be learned, is better than without; all else is new."""
    start = {"show": False, "frames": 8, "run": {"threads": 1, "reports": 1}, "actor.num_envs": 8}
    scratch = lbc.train("catch", seed=9, out=tmp_path / "scratch", **start)
    other = {"learner.popart": False, "environment.max_episode_steps": 20}  # other values, another game
    tuned = lbc.train("catch", seed=9, out=tmp_path / "tuned", init=catch.path, **start, **other)
    scores = []
    for result in (scratch, tuned):
        ways = lbc.evaluate(result.path, episodes=60)
        scores.append(np.mean([ways[f"component_{i}"].mean for i in (1, 2, 3)]))
    assert scores[1] > scores[0] + 0.2, scores
    assert tuned.summary["init"] == str(catch.path) and tuned.summary["updates"] == 0
    assert lbc.load_run(tuned.path).config["run"]["init"] == str(catch.path)
    assert scratch.summary["init"] is None
    for network, other in zip(tuned.agent().networks, catch.agent().networks, strict=True):
        assert all(torch.equal(x, other.state_dict()[name]) for name, x in network.state_dict().items())


def test_weights_that_do_not_fit_are_refused(catch, tmp_path, capsys):
    def refused(*wishes):
        command = ["train", "catch", "--init", str(catch.path), "--out", str(tmp_path / "run")]
        assert main([*command, "--set", "actor.num_envs=8", *wishes]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert not (tmp_path / "run").exists()
        return line

    assert "'value.0.weight' has shape (64, 68) there and (64, 69) here" in refused(
        "environment.catch_actions=4"
    )
    assert "exists only here" in refused("model.value_head=own")
    assert "exists only there" in refused("model.auxiliary_forward=false")
    assert "has 3 policies, but this run has 2" in refused(
        "population.discounts=[0.9, 0.99]", 'population.shapings=["sqrt", "log"]'
    )
    (tmp_path / "empty").mkdir()
    assert main(["train", "catch", "--init", str(tmp_path / "empty"), "--out", str(tmp_path / "run")]) == 2
    assert "has no weights that can be read yet" in capsys.readouterr().err


def test_the_package_is_light_until_it_is_used():
    """`lbc --help` must not wait for torch."""
    code = "import lbc, sys; print('torch' in sys.modules, 'lbc.api' in sys.modules, 'train' in dir(lbc))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True"]
    assert all(getattr(lbc, name) is getattr(lbc.api, name) for name in lbc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        lbc.trian  # noqa: B018

"""``lbc export``; what it needs is imported when it runs, so that ``lbc --help`` answers at once."""

from __future__ import annotations

from dataclasses import dataclass

_SUFFIXES = {"torchscript": ".pt", "onnx": ".onnx"}


@dataclass(frozen=True)
class Export:
    """Write a trained agent as one function that runs without lbc, or as a small folder for lbc.

    Args:
        directory: Directory of the run.
        format: torchscript, onnx, or lbc: a folder for lbc play, eval and load_agent, without the training.
        out: The file; by default agent.pt, agent.onnx or agent/ in the run's directory.
        component: One component of the behavior alone, from 1; by default the whole mixture.
        allow_code: Import the code that the run names as module:factory.
    """

    directory: str
    format: str = "torchscript"
    out: str | None = None
    component: int | None = None
    allow_code: bool = False

    def run(self) -> int:
        from lbc.agents import load_agent, place_for

        agent = load_agent(self.directory, "cpu", self.allow_code)
        default = place_for(self.directory, f"agent{_SUFFIXES.get(self.format, '')}")
        path = agent.export(self.out or default, self.format, self.component)
        size = sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())
        print(f"{path}: {agent.spec.id}, {agent.frames:,} frames of training, {size:,} bytes")
        return 0

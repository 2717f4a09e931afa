"""Draws docs/short_pong_probes.png from the recorded curves: python docs/data/plot_short_pong_probes.py"""

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00")

curves = json.loads((HERE / "short_pong_probes.json").read_text())
figure, axis = plt.subplots(figsize=(8, 4.2), dpi=130)
for (label, curve), colour in zip(curves.items(), COLOURS, strict=True):
    points = [(f / 1e6, s) for f, s in zip(curve["frames"], curve["score"], strict=True) if s is not None]
    axis.plot(*zip(*points, strict=True), color=colour, lw=2, label=label)
axis.axhline(-10, color="0.5", ls=":", lw=1)
axis.text(0.05, -9.75, "goal: -10", color="0.4", fontsize=9)
axis.set(xlabel="million frames", ylabel="score, mean of 100 training episodes", ylim=(-21.5, -7))
axis.set_title("Short Pong: IMPALA learns, the decoupled mixture does not (one seed each)", fontsize=11)
axis.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0.0, 0.72))
axis.spines[["top", "right"]].set_visible(False)
figure.tight_layout()
figure.savefig(HERE.parent / "short_pong_probes.png")

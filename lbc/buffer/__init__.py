"""Trajectories in, [L, S] batches out."""

from lbc.buffer.sequences import SequenceBuffer

__all__ = ["SequenceBuffer"]

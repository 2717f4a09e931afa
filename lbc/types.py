"""Records: the only currency between components.

One convention of time everywhere, the one of the stored row.  Row ``t`` holds everything that was
known when action ``a_t`` was chosen, plus that action::

    row t:   frame_t  first_t  reward_t  terminated_t  truncated_t   ->   action_t  log_mu_t  psi_t

``reward_t``, ``terminated_t`` and ``truncated_t`` *arrived together with* ``frame_t``: they are the
outcome of ``action_{t-1}``.  So the transition that action ``a_t`` causes is
``(frame_t, a_t, reward_{t+1}, terminated_{t+1}, frame_{t+1})``.

An episode end needs one more row, not a special case.  The row whose ``terminated_t`` or
``truncated_t`` is set carries the final observation; the action chosen there is ignored, and row
``t+1`` is the first of the next episode (``first_{t+1}``, reward 0).  A transition is real exactly
when ``first_{t+1}`` is false; losses and traces are masked by that one flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # environment processes live without torch
    from torch import Tensor


@dataclass(frozen=True)
class EnvironmentSpec:
    """What a game looks like from outside."""

    id: str
    frame_shape: tuple[int, ...]  # one frame, channels first: (1, 84, 84), (4, 10, 10) or (features,)
    frame_dtype: type  # np.uint8 for images (0..255), np.float32 otherwise
    num_actions: int
    frame_stack: int = 1  # frames that a network sees at once; stacked by actor and buffer
    frames_per_step: int = 1  # emulator frames behind one action, for counting only

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape that a network sees: the stack multiplies the leading axis."""
        return (self.frame_shape[0] * self.frame_stack, *self.frame_shape[1:])


@dataclass(frozen=True)
class EnvironmentStep:
    """What E environments answer to E actions: the left half of a row (see the module's text)."""

    frame: np.ndarray  # [E, *frame_shape], the newest frame alone, valid until the next call
    reward: np.ndarray  # [E] float32, raw
    terminated: np.ndarray  # [E] bool: the game is over, its value is 0
    truncated: np.ndarray  # [E] bool: only the time is over, the value goes on
    first: np.ndarray  # [E] bool: first frame of an episode; the action before it was ignored
    lost: np.ndarray  # [E] bool: a life that counts as an end of all value, though the game goes on

    def part(self, which: np.ndarray) -> EnvironmentStep:
        """Of some environments alone."""
        return EnvironmentStep(*(getattr(self, f.name)[which] for f in fields(self)))

    @staticmethod
    def together(parts: Sequence[EnvironmentStep]) -> EnvironmentStep:
        names = [f.name for f in fields(EnvironmentStep)]
        return EnvironmentStep(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True)
class ProgressSnapshot:
    """What a progress line shows."""

    fraction: float  # of the budget, 0..1
    frames: int
    seconds: float
    frames_per_second: float
    episodes: int
    score_mean: float  # NaN before the first episode ends
    behavior_entropy: float  # of mu, in nats


@dataclass(frozen=True)
class Row:
    """One stored step of E environments (see the module's text)."""

    frame: Tensor  # [E, *frame_shape]
    first: Tensor  # [E] bool
    reward: Tensor  # [E] raw, arrived with the frame
    terminated: Tensor  # [E] bool, arrived with the frame: no value beyond (game over, or `lost`)
    action: Tensor  # [E] int64, chosen now
    log_mu: Tensor  # [E, A] the behavior's log-probabilities now
    log_pi: Tensor  # [E, N] every target policy's log-probability of the action, now
    psi: Tensor  # [E, 2M] behind log_mu


@dataclass(frozen=True)
class Stack:
    """Observations whose frames are stacked when somebody looks: K of them for each of [T, S] rows."""

    frame: Tensor  # [K - 1 + T, S, *frame_shape], the rows' own behind K - 1 earlier ones
    since_first: Tensor  # [T, S] int64: rows since the episode began

    @property
    def depth(self) -> int:
        """K - 1."""
        return len(self.frame) - len(self.since_first)

    def tensor(self) -> Tensor:
        """[T, S, *observation_shape].

        Newest frame last; before the episode's first frame, that frame repeats.  Images lie in memory with
        their channels last, as convolutions like it.
        """
        if self.depth == 0:
            return self.frame
        from torch import arange

        (rows, sequences), device = self.since_first.shape, self.since_first.device
        frames, (channels, *size) = self.frame.flatten(0, 1), self.frame.shape[2:]
        at = (arange(rows, device=device) + self.depth).unsqueeze(1) * sequences
        at = at + arange(sequences, device=device)  # [T, S] each row's own place in `frames`
        stack = frames.new_empty(at.numel(), *size, self.depth + 1, channels)
        for k, back in enumerate(range(self.depth, -1, -1)):
            earlier = at - self.since_first.clamp(max=back) * sequences
            stack[..., k, :] = frames.index_select(0, earlier.flatten()).movedim(1, -1)
        return stack.flatten(-2).movedim(-1, 1).unflatten(0, at.shape)


@dataclass(frozen=True)
class Batch:
    """S sequences for a learner, time first; L = burn_in + T + 1 rows, the last for bootstrapping.

    Frames are stacked when somebody looks: a stack of K would make the batch nearly K times as large.
    """

    frame: Tensor  # [K - 1 + L, S, *frame_shape], the rows' own behind K - 1 earlier ones
    since_first: Tensor  # [L, S] int64: rows since the episode began
    first: Tensor  # [L, S] bool
    reward: Tensor  # [L, S] raw
    terminated: Tensor  # [L, S] bool
    action: Tensor  # [L, S] int64
    previous_action: Tensor  # [L, S] int64
    log_mu: Tensor  # [L, S, A]
    log_pi: Tensor  # [L, S, N] of the action taken, when it was taken
    psi: Tensor  # [L, S, 2M]
    state: Tensor  # [N, 2, S, units] of every policy, before the first row
    burn_in: int
    age: float  # mean age of the sequences, in actor steps since their last row

    @property
    def observation(self) -> Tensor:
        """[L, S, *observation_shape]."""
        return self.stack(0, len(self.first)).tensor()

    def stack(self, begin: int, end: int) -> Stack:
        """Observations of the rows from `begin` to `end`."""
        depth = len(self.frame) - len(self.first)
        return Stack(self.frame[begin : end + depth], self.since_first[begin:end])

    def part(self, begin: int, end: int) -> Batch:
        """Its sequences from `begin` to `end`."""
        parts: dict[str, Any] = {name: x[:, begin:end] for name, x in self._by_row().items()}
        return replace(self, **parts, state=self.state[:, :, begin:end])

    def parts(self, count: int) -> list[Batch]:
        """Its sequences in so many parts, as equal as can be."""
        cuts = [len(self.reward[0]) * i // count for i in range(count + 1)]
        return [self.part(begin, end) for begin, end in pairwise(cuts)]

    def until(self, end: int) -> Batch:
        """Its rows before `end`."""
        left_out = len(self.first) - end
        parts: dict[str, Any] = {name: x[: len(x) - left_out] for name, x in self._by_row().items()}
        return replace(self, **parts)

    def _by_row(self) -> dict[str, Tensor]:
        """Tensors of rows and sequences, in this order of axes."""
        names = [f.name for f in fields(self) if f.name not in ("state", "burn_in", "age")]
        return {name: getattr(self, name) for name in names}

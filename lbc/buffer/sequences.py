"""The data buffer: one frame per step in, [L, S] batches out.

Time is cut into sequences of T trained rows.  Sequence k of environment e trains on rows
kT .. (k+1)T - 1, warms the recurrent state up on the `burn_in` rows before, and bootstraps from row
(k+1)T.  Rows lie in a ring, one frame each; a batch stacks them when a learner looks.

    append(row, state)  ...  while ready(): learn from sample()

Every sequence is used exactly `replay` times.  `reserve` sequences are held back, so that a batch
mixes fresh and older data; what would fall out of the ring is used first.

Environments may come in `groups` of equal size that are appended one after the other, each with a
clock of its own.  With `staggered` the sequences of a group do not end all at once, but evenly spread
over T steps, so that learners have work at every moment instead of a burst every T steps.  A sequence
then begins `offset` rows before kT.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from lbc.config import BufferConfig
from lbc.types import Batch, EnvironmentSpec, Row


class SequenceBuffer:
    SAVED = (
        "_frame", "_first", "_reward", "_terminated", "_action", "_log_mu", "_log_pi", "_psi", "_since_first",
        "_state", "_uses", "_time", "_rng",
    )  # fmt: skip

    def __init__(
        self,
        config: BufferConfig,
        spec: EnvironmentSpec,
        num_envs: int,
        psi_size: int,
        state_shape: tuple[int, int],  # (N policies, units)
        rng: np.random.Generator,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        groups: int = 1,
        staggered: bool = False,
    ) -> None:
        assert num_envs % groups == 0, f"{num_envs} environments in {groups} groups"
        self._config = config
        self._spec = spec
        self._rng = rng
        length = config.sequence_length
        # A generation is the E sequences that end together.  `kept` of them may have uses left; from
        # `mature` generations of age on a sequence goes first, so that none falls out of the ring unused.
        slack = math.ceil(config.batch_size / (num_envs * config.replay)) + 1
        # Few end at a time when staggered.  So uses are held back: `replay` batches' worth of sequences, on
        # average half used up, and a batch is mostly unlike the one before it.
        stages = config.replay * (config.replay + 1) // 2
        mixing = config.batch_size * (stages - 1) if staggered else 0
        self._held = config.reserve * config.replay + mixing
        self._mature = math.ceil(config.reserve / num_envs) + math.ceil(mixing / num_envs) + slack
        # a batch holds a sequence once, so its last uses take up to `replay` batches
        kept = self._mature + math.ceil(config.batch_size / num_envs) + groups
        before = math.ceil((config.burn_in + spec.frame_stack) / length)  # rows behind the oldest sequence
        self._kept = kept
        self._generations = kept + before + 1
        self._rows = self._generations * length
        # A state is stored when its burn-in begins, before the sequence itself.
        self._slots = self._generations + 1 + math.ceil(config.burn_in / length)
        shape = (self._rows, num_envs)
        frame_dtype = torch.uint8 if spec.frame_dtype is np.uint8 else dtype

        def zeros(*more: int, kind: torch.dtype = dtype) -> Tensor:
            return torch.zeros(*shape, *more, dtype=kind, device=device)

        self._frame = zeros(*spec.frame_shape, kind=frame_dtype)
        self._first = zeros(kind=torch.bool)
        self._reward = zeros()
        self._terminated = zeros(kind=torch.bool)
        self._action = zeros(kind=torch.int64)
        self._log_mu = zeros(spec.num_actions)
        self._log_pi = zeros(state_shape[0])
        self._psi = zeros(psi_size)
        self._since_first = zeros(kind=torch.int64)  # rows since the episode began, for stacking
        policies, units = state_shape
        self._state = torch.zeros(self._slots, policies, 2, num_envs, units, dtype=dtype, device=device)
        self._uses = np.zeros((self._generations, num_envs), dtype=np.int64)  # uses left of each sequence
        self._size = num_envs // groups
        self._time = np.zeros(groups, dtype=np.int64)  # rows of each group appended so far
        self._group = np.repeat(np.arange(groups), self._size)  # [E] of each environment
        within = (
            np.arange(self._size) * length // self._size * staggered
        )  # rising, so that equals are a slice
        self._offset = np.tile(within, groups)  # [E]

    @property
    def bytes_per_step(self) -> int:
        """Stored bytes for one step of one environment, recurrent states included."""
        rows = (self._frame, self._first, self._reward, self._terminated, self._action, self._log_mu)
        total = sum(x.nbytes for x in (*rows, self._log_pi, self._psi, self._since_first, self._state))
        return total // (self._rows * self._frame.shape[1])

    def append(self, row: Row, state: Tensor, group: int = 0) -> None:
        """Adds row t of a group; `state` [N, 2, E, units] is every policy's recurrent state before it."""
        t, first_env = int(self._time[group]), group * self._size
        at, envs = t % self._rows, slice(first_env, first_env + self._size)
        self._open(*self._beginning(t, group))
        self._frame[at, envs] = row.frame
        self._first[at, envs] = row.first
        self._reward[at, envs] = row.reward
        self._terminated[at, envs] = row.terminated
        self._action[at, envs] = row.action
        self._log_mu[at, envs] = row.log_mu
        self._log_pi[at, envs] = row.log_pi
        self._psi[at, envs] = row.psi
        previous = self._since_first[(t - 1) % self._rows, envs]
        self._since_first[at, envs] = torch.where(row.first, 0, previous + 1)
        generation, warming = self._beginning(t + self._config.burn_in, group)
        of_group = slice(warming.start - first_env, warming.stop - first_env)
        self._state[generation % self._slots, :, :, warming] = state[:, :, of_group]
        self._time[group] = t + 1

    def _beginning(self, t: int, group: int) -> tuple[int, slice]:
        """The environments of a group whose sequence begins at row t, and its number."""
        length, first_env = self._config.sequence_length, group * self._size
        offset = -t % length
        within = self._offset[first_env : first_env + self._size]
        begin, end = np.searchsorted(within, [offset, offset + 1])
        return (t + offset) // length, slice(first_env + int(begin), first_env + int(end))

    def _open(self, generation: int, envs: slice) -> None:
        """Row kT completes sequence k - 1, and its generation takes the ring's oldest place."""
        slot = generation % self._generations
        if self._uses[slot, envs].any() or self._uses[self._expiring(generation), envs].any():
            raise RuntimeError("the data buffer would overwrite sequences that have uses left")
        if generation > 0:
            self._uses[(generation - 1) % self._generations, envs] = self._config.replay

    def _expiring(self, generation: int) -> int:
        """Slot of the oldest generation that may still have uses when `generation` opens."""
        return (generation - 1 - self._kept) % self._generations

    def ready(self) -> bool:
        return int(self._uses.sum()) - self._held >= self._config.batch_size

    def sample(self) -> Batch:
        """The next batch: first what would expire, then uniformly among all that has uses left."""
        clock = self._time[self._group] + self._offset
        newest = (clock - 1) // self._config.sequence_length - 1  # [E] generation
        age = (newest - np.arange(self._generations)[:, None]) % self._generations  # [slots, E]
        chosen: list[np.ndarray] = []
        missing = self._config.batch_size
        while missing > 0:  # a sequence comes twice in a batch only where there are too few others
            slots, envs = np.nonzero(self._uses > 0)
            urgency = np.where(age[slots, envs] >= self._mature, age[slots, envs], 0)
            pick = np.lexsort((self._rng.random(len(slots)), -urgency))[:missing]
            self._uses[slots[pick], envs[pick]] -= 1
            chosen.append(np.stack([slots[pick], envs[pick]]))
            missing -= len(pick)
        slots, envs = np.concatenate(chosen, axis=1)
        return self._gather(newest[envs] - age[slots, envs], envs)

    def _gather(self, generations: np.ndarray, envs: np.ndarray) -> Batch:
        config, length = self._config, self._config.sequence_length
        begin = torch.as_tensor(generations * length - self._offset[envs] - config.burn_in)
        span = config.burn_in + length + 1
        # Rows before the run began repeat row 0, a first row: they reset the state, nothing more.
        time = (begin + torch.arange(span).unsqueeze(1)).clamp(min=0).to(self._frame.device)  # [L, S]
        env = torch.as_tensor(envs).to(self._frame.device).expand(span, -1)
        at = time % self._rows
        depth = self._spec.frame_stack - 1
        earlier = (begin + torch.arange(-depth, 0).unsqueeze(1)).clamp(min=0).to(at.device) % self._rows
        slot = torch.as_tensor(generations % self._slots).to(self._frame.device)
        state = self._state[slot, :, :, env[0]].permute(1, 2, 0, 3).contiguous()
        if not config.burn_in_stored_state:
            state = torch.zeros_like(state)
        clock = self._time[self._group[envs]] + self._offset[envs]
        age = float((clock - 1 - (generations + 1) * length).mean())
        return Batch(
            frame=self._frame[torch.cat([earlier, at]), env[0]],
            since_first=self._since_first[at, env],
            first=self._first[at, env],
            reward=self._reward[at, env],
            terminated=self._terminated[at, env],
            action=self._action[at, env],
            previous_action=self._action[(at - 1) % self._rows, env],
            log_mu=self._log_mu[at, env],
            log_pi=self._log_pi[at, env],
            psi=self._psi[at, env],
            state=state,
            burn_in=config.burn_in,
            age=age,
        )

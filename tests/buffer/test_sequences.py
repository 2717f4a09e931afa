"""The data buffer: every sequence is used `replay` times, and holds exactly what was appended."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field, fields

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lbc.buffer import SequenceBuffer
from lbc.config import BufferConfig
from lbc.types import Batch, EnvironmentSpec, Row

ACTIONS, PSI, POLICIES, UNITS = 3, 4, 2, 5
AT_ONCE = {"sequence_length": 1, "burn_in": 0, "groups": 1, "seed": 0, "staggered": False}


@dataclass
class Diary:
    """Appends rows that say where they come from, and remembers them: [t][e]."""

    config: BufferConfig
    num_envs: int = 2
    frame_stack: int = 1
    ends: float = 0.2
    seed: int = 0
    image: bool = True
    groups: int = 1
    staggered: bool = False
    time: int = 0
    rows: list[Row] = field(default_factory=list)
    states: list[torch.Tensor] = field(default_factory=list)
    sampling: bool = False  # after every group, as a runtime does
    found: list[Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.spec = EnvironmentSpec(
            "diary", (1, 1, 2) if self.image else (2,), np.float32, ACTIONS, frame_stack=self.frame_stack
        )
        self.rng = np.random.default_rng(self.seed)
        self.buffer = SequenceBuffer(
            self.config,
            self.spec,
            self.num_envs,
            psi_size=PSI,
            state_shape=(POLICIES, UNITS),
            rng=np.random.default_rng(self.seed),
            device=torch.device("cpu"),
            groups=self.groups,
            staggered=self.staggered,
        )
        self.ended = np.ones(self.num_envs, bool)

    def append(self) -> None:
        e, t, rng = self.num_envs, self.time, self.rng
        first = self.ended
        end = (rng.random(e) < self.ends) & ~first
        terminated = end & (rng.random(e) < 0.5)
        frame = np.stack([np.full(e, t), np.arange(e)], -1).reshape(e, *self.spec.frame_shape)
        row = Row(
            frame=torch.from_numpy(frame).float(),
            first=torch.from_numpy(first.copy()),
            reward=torch.from_numpy(np.where(first, 0.0, rng.normal(size=e))).float(),
            terminated=torch.from_numpy(terminated),
            action=torch.from_numpy(rng.integers(0, ACTIONS, e)),
            log_mu=torch.from_numpy(rng.normal(size=(e, ACTIONS))).float(),
            log_pi=torch.from_numpy(rng.normal(size=(e, POLICIES))).float(),
            psi=torch.from_numpy(rng.normal(size=(e, PSI))).float(),
        )
        state = torch.from_numpy(rng.normal(size=(POLICIES, 2, e, UNITS))).float()
        self.rows.append(row)
        self.states.append(state)
        self.ended = end
        self.time += 1
        for group in range(self.groups):
            envs = slice(group * e // self.groups, (group + 1) * e // self.groups)
            part = Row(*(getattr(row, f.name)[envs] for f in fields(row)))
            self.buffer.append(part, state[:, :, envs], group)
            if self.sampling:
                while self.buffer.ready():
                    self.found.append(self.buffer.sample())

    def batches(self, steps: int) -> list[Batch]:
        self.sampling = True
        for _ in range(steps):
            self.append()
        self.sampling = False
        return self.found

    def origins(self, batch: Batch) -> list[tuple[int, int]]:
        """(generation, environment) of each sequence, read from the newest frame of its last row."""
        newest = batch.observation[-1].flatten(1)[:, -2:].int().tolist()
        return [((t + self.offset(e)) // self.config.sequence_length - 1, e) for t, e in newest]

    def offset(self, env: int) -> int:
        """Rows by which an environment's sequences begin before the multiples of T."""
        size = self.num_envs // self.groups
        return env % size * self.config.sequence_length // size if self.staggered else 0

    def check(self, batch: Batch) -> None:
        """Every field of every row against what was appended."""
        length, burn_in = self.config.sequence_length, self.config.burn_in
        for s, (generation, e) in enumerate(self.origins(batch)):
            begin = generation * length - self.offset(e) - burn_in
            for i in range(burn_in + length + 1):
                t = max(0, begin + i)
                row = self.rows[t]
                assert batch.first[i, s] == row.first[e]
                assert batch.reward[i, s] == row.reward[e]
                assert batch.terminated[i, s] == row.terminated[e]
                assert batch.action[i, s] == row.action[e]
                torch.testing.assert_close(batch.log_mu[i, s], row.log_mu[e], rtol=0, atol=0)
                torch.testing.assert_close(batch.psi[i, s], row.psi[e], rtol=0, atol=0)
                if not row.first[e]:
                    assert batch.previous_action[i, s] == self.rows[t - 1].action[e]
                expected = self.stacked(t, e)
                torch.testing.assert_close(batch.observation[i, s], expected, rtol=0, atol=0)
            if begin >= 0:
                torch.testing.assert_close(batch.state[:, :, s], self.states[begin][:, :, e], rtol=0, atol=0)
            else:
                assert batch.first[0, s], "what comes before the run is reset by a first row"

    def stacked(self, t: int, e: int) -> torch.Tensor:
        """Oldest first; before the episode began, its first frame repeats."""
        frames = []
        for back in range(self.frame_stack - 1, -1, -1):
            at = t
            for _ in range(back):
                if self.rows[at].first[e]:
                    break
                at -= 1
            frames.append(self.rows[at].frame[e])
        return torch.cat(frames)


def config(**options) -> BufferConfig:
    return BufferConfig(**({"sequence_length": 4, "burn_in": 0, "batch_size": 2, "replay": 2} | options))


@settings(max_examples=60)
@given(
    num_envs=st.integers(1, 6),
    batch_size=st.integers(1, 12),
    replay=st.integers(1, 4),
    reserve=st.integers(0, 12),
    sequence_length=st.integers(1, 4),
    burn_in=st.integers(0, 6),
    groups=st.integers(1, 3),
    seed=st.integers(0, 100),
    staggered=st.booleans(),
)
@example(num_envs=1, batch_size=8, replay=4, reserve=10, **AT_ONCE)
@example(num_envs=4, batch_size=16, replay=4, reserve=40, **AT_ONCE)
@example(num_envs=2, batch_size=8, replay=2, reserve=4, **AT_ONCE)
def test_every_sequence_is_used_exactly_replay_times(
    num_envs, batch_size, replay, reserve, sequence_length, burn_in, groups, seed, staggered
):
    """No use is lost, none is invented, and the guard against overwriting never speaks.

    What is held back or waits for a full batch is the newest data: older sequences are all used up.
    """
    options = config(
        sequence_length=sequence_length,
        burn_in=burn_in,
        batch_size=batch_size,
        replay=replay,
        reserve=reserve,
    )
    num_envs *= groups
    diary = Diary(options, num_envs=num_envs, seed=seed, groups=groups, staggered=staggered)
    waiting = (
        reserve + (replay + 1) ** 2 * batch_size
    ) // num_envs + 4  # generations that may have uses left
    generations = waiting + 15
    batches = diary.batches(generations * sequence_length + 1)
    uses = Counter(origin for batch in batches for origin in diary.origins(batch))
    old = [(g, e) for g in range(generations - waiting) for e in range(num_envs)]
    assert [uses[origin] for origin in old] == [replay] * len(old)
    assert max(uses.values()) <= replay
    if not staggered:
        unused = num_envs * generations * replay - uses.total()
        assert reserve * replay <= unused < reserve * replay + batch_size


@settings(max_examples=40)
@given(
    num_envs=st.integers(1, 3),
    batch_size=st.integers(1, 5),
    reserve=st.sampled_from([0, 5]),
    sequence_length=st.integers(1, 5),
    burn_in=st.integers(0, 11),
    frame_stack=st.integers(1, 4),
    ends=st.sampled_from([0.0, 0.2, 0.9]),
    groups=st.integers(1, 3),
    seed=st.integers(0, 1000),
    staggered=st.booleans(),
)
def test_a_batch_holds_what_was_appended(
    num_envs, batch_size, reserve, sequence_length, burn_in, frame_stack, ends, groups, seed, staggered
):
    """Frames, stacks, previous actions and states, over several rounds of the ring; burn-in may be
    longer than a sequence, stacks reach across sequence and ring borders, episodes start anywhere."""
    options = config(
        sequence_length=sequence_length, burn_in=burn_in, batch_size=batch_size, replay=1, reserve=reserve
    )
    shape = {"num_envs": num_envs * groups, "groups": groups, "frame_stack": frame_stack}
    diary = Diary(options, **shape, staggered=staggered, ends=ends, seed=seed, sampling=True)
    steps = max(40, 2 * len(diary.buffer._frame) + 2)
    checked = 0
    for _ in range(steps):
        diary.append()
        while diary.found:
            batch = diary.found.pop()
            assert len(batch.observation) == burn_in + sequence_length + 1
            assert batch.burn_in == burn_in
            if checked < 4 or diary.time > steps - 2 * sequence_length:
                diary.check(batch)
            checked += 1
    assert checked > 0


def test_staggered_sequences_end_one_after_the_other():
    """Eight environments, T = 4: two sequences at every step, each batch mostly unlike the last."""
    diary = Diary(config(batch_size=4), num_envs=8, staggered=True, sampling=True)
    arrived = []
    for _ in range(40):
        before = len(diary.found)
        diary.append()
        arrived.append(len(diary.found) - before)
    assert set(arrived[8:]) == {1}
    for batch in diary.found:
        origins = diary.origins(batch)
        assert len(set(origins)) == len(origins)
    pairs = list(itertools.pairwise(diary.found))
    shared = [len({*diary.origins(a)} & {*diary.origins(b)}) for a, b in pairs]
    assert np.mean(shared) < 0.6 * 4, "half of a batch is new"


def test_stacks_by_hand():
    """One environment, stack 3, T = 4; an episode begins at rows 0 and 5; values are row numbers."""
    diary = Diary(config(batch_size=1, replay=1), num_envs=1, frame_stack=3, ends=0.0)
    for t in range(9):
        diary.ended[:] = t in (0, 5)
        diary.append()
    observations = {}
    while diary.buffer.ready():
        batch = diary.buffer.sample()
        (origin,) = diary.origins(batch)
        observations[origin[0]] = batch.observation[:, 0, :, 0, 0].int().tolist()
    assert observations[0] == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert observations[1] == [[2, 3, 4], [5, 5, 5], [5, 5, 6], [5, 6, 7], [6, 7, 8]]


def test_a_sequence_is_complete_with_the_row_behind_it():
    diary = Diary(config(batch_size=2, replay=1), num_envs=2)
    for _ in range(4):
        diary.append()
    assert not diary.buffer.ready(), "the row to bootstrap from is missing"
    diary.append()
    assert diary.buffer.ready()
    assert sorted(diary.origins(diary.buffer.sample())) == [(0, 0), (0, 1)]
    assert not diary.buffer.ready()


def test_age_is_counted_from_the_last_row():
    """T = 4: sequence 0 ends with row 4.  Sampled right then it is 0 steps old, three rows later 3."""
    diary = Diary(config(batch_size=1, replay=2), num_envs=1)
    for _ in range(5):
        diary.append()
    assert diary.buffer.sample().age == 0.0
    for _ in range(3):
        diary.append()
    assert diary.buffer.sample().age == 3.0


def test_a_batch_prefers_different_sequences():
    diary = Diary(config(batch_size=3, replay=3), num_envs=3)
    for _ in range(5):
        diary.append()
    while diary.buffer.ready():
        assert len(set(diary.origins(diary.buffer.sample()))) == 3


def test_a_batch_larger_than_all_sequences_repeats_them():
    diary = Diary(config(batch_size=6, replay=3), num_envs=2)
    (batch,) = diary.batches(5)
    assert Counter(diary.origins(batch)) == {(0, 0): 3, (0, 1): 3}


def test_a_reserve_mixes_old_and_new():
    """Held back: ten sequences.  Batches then come from several generations."""
    diary = Diary(config(batch_size=4, replay=1, reserve=10), num_envs=2)
    batches = diary.batches(4 * 40 + 1)
    generations = [len({g for g, _ in diary.origins(batch)}) for batch in batches]
    assert np.mean(generations) > 2
    without = Diary(config(batch_size=4, replay=1, reserve=0), num_envs=2).batches(4 * 40 + 1)
    assert np.mean([b.age for b in batches]) > np.mean([b.age for b in without]) + 4


def test_the_reserve_is_never_touched():
    diary = Diary(config(batch_size=1, replay=2, reserve=3), num_envs=1)
    assert diary.batches(3 * 4 + 1) == []
    assert len(diary.batches(4)) == 2


def test_stored_states_can_be_switched_off():
    diary = Diary(config(burn_in=2, batch_size=1, burn_in_stored_state=False), num_envs=1)
    for batch in diary.batches(30):
        assert not batch.state.any()


def test_the_state_is_the_one_before_burn_in():
    """T = 4, burn-in 6: sequence 2 (rows 8..11) begins its burn-in at row 2."""
    diary = Diary(config(burn_in=6, batch_size=1, replay=1), num_envs=1)
    for batch in diary.batches(13):
        ((generation, _),) = diary.origins(batch)
        if generation == 2:
            torch.testing.assert_close(batch.state[:, :, 0], diary.states[2][:, :, 0], rtol=0, atol=0)
            return
    pytest.fail("sequence 2 never came")


def test_vector_frames_are_stacked_along_their_features():
    diary = Diary(config(batch_size=1, replay=1), num_envs=1, frame_stack=2, image=False)
    for batch in diary.batches(20):
        assert batch.observation.shape == (5, 1, 4)
        diary.check(batch)


def test_bytes_stay_bytes():
    spec = EnvironmentSpec("bytes", (1, 2, 2), np.uint8, 2)
    buffer = SequenceBuffer(
        config(batch_size=1), spec, 1, 2, (1, 0), np.random.default_rng(0), torch.device("cpu")
    )
    for t in range(5):
        flag = torch.tensor([t == 0])
        zero = torch.zeros(1)
        frame = torch.full((1, 1, 2, 2), 250 + t, dtype=torch.uint8)
        row = Row(
            frame,
            flag,
            zero,
            torch.tensor([False]),
            zero.long(),
            torch.zeros(1, 2),
            torch.zeros(1, 1),
            torch.zeros(1, 2),
        )
        buffer.append(row, torch.zeros(1, 2, 1, 0))
    batch = buffer.sample()
    assert batch.observation.dtype == torch.uint8
    assert batch.observation[:, 0, 0, 0, 0].tolist() == [250, 251, 252, 253, 254]


def test_overwriting_what_was_not_used_is_refused():
    diary = Diary(config(batch_size=1), num_envs=1)
    with pytest.raises(RuntimeError, match="uses left"):
        for _ in range(200):
            diary.append()


@pytest.mark.parametrize("burn_in, frame_stack", [(0, 1), (0, 4), (4, 1), (3, 2), (8, 4)])
def test_what_the_guard_lets_live_is_intact(burn_in, frame_stack):
    """Learn from four generations, then append without learning until one more row would be refused:
    even the oldest sequence still has all its rows, stacks, previous actions and its state."""

    def fill(rows: int) -> Diary:
        options = config(burn_in=burn_in, batch_size=1, replay=1)
        diary = Diary(options, num_envs=1, frame_stack=frame_stack, ends=0.05)
        diary.batches(17)
        for _ in range(rows):
            diary.append()
        return diary

    rows = 0
    with pytest.raises(RuntimeError):
        for rows in range(200):
            fill(rows)
    diary = fill(rows - 1)
    generations = []
    while diary.buffer.ready():
        batch = diary.buffer.sample()
        diary.check(batch)
        generations += [generation for generation, _ in diary.origins(batch)]
    assert min(generations) == 4 and len(generations) >= 3

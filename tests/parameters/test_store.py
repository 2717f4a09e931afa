"""Checkpoints on disk: whole or not at all; every damage is noticed and the one before it used."""

from __future__ import annotations

import errno
import json
import os
import pickle
import random
import shutil

import pytest
import torch

from lbc.errors import TrainingError
from lbc.parameters import Checkpoint, newest, store, write


def checkpoint(frames: int) -> Checkpoint:
    tensors = {"a": torch.full((30,), float(frames)), "b.c": torch.arange(20)}
    return Checkpoint(frames, {"dict": [["frames", frames]]}, tensors, {"mark": frames * 2})


def assert_is(found: Checkpoint | None, frames: int) -> None:
    assert found is not None
    expected = checkpoint(frames)
    assert (found.frames, found.state, found.info) == (frames, expected.state, expected.info)
    assert found.tensors.keys() == expected.tensors.keys()
    assert all(torch.equal(found.tensors[name], expected.tensors[name]) for name in expected.tensors)


def test_the_newest_comes_back_and_the_last_few_are_kept(tmp_path):
    for frames in (5, 100, 20, 3000):
        write(tmp_path, checkpoint(frames), keep=2)
    found, complaints = newest(tmp_path)
    assert_is(found, 3000)
    assert not complaints
    assert sorted(os.listdir(tmp_path)) == ["000000000100", "000000003000"]
    assert newest(tmp_path / "elsewhere") == (None, [])


def test_writing_the_same_frames_again_replaces_them(tmp_path):
    write(tmp_path, checkpoint(7))
    write(tmp_path, checkpoint(7))
    assert_is(newest(tmp_path)[0], 7)


def test_shards_are_small_and_whole(tmp_path):
    tensors = {str(i): torch.rand(100) for i in range(20)}
    folder = write(tmp_path, Checkpoint(1, None, tensors), shard_bytes=900)
    assert len(list(folder.glob("*.safetensors"))) == 10
    found, _ = newest(tmp_path)
    assert found is not None and all(torch.equal(found.tensors[k], tensors[k]) for k in tensors)


def damaged_variants(folder, count: int, rng: random.Random):
    """Yields after each damage to one file of `folder`: a flipped bit, or a cut; then repairs it."""
    files = sorted(folder.iterdir())
    for _ in range(count):
        path = rng.choice(files)
        good = path.read_bytes()
        if rng.random() < 0.3:
            path.write_bytes(good[: rng.randrange(len(good))])
        else:
            bad = bytearray(good)
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
            path.write_bytes(bytes(bad))
        yield path
        path.write_bytes(good)


def test_every_damage_is_noticed_and_the_previous_checkpoint_used(tmp_path):
    write(tmp_path, checkpoint(1))
    folder = write(tmp_path, checkpoint(2))
    for path in damaged_variants(folder, 1000, random.Random(0)):
        found, complaints = newest(tmp_path)
        assert_is(found, 1)
        assert len(complaints) == 1, path
        assert "000000000002" in complaints[0]
    assert_is(newest(tmp_path)[0], 2)


@pytest.mark.parametrize("missing", ["manifest.json", "tensors-00.safetensors"])
def test_a_missing_file_is_noticed(tmp_path, missing):
    write(tmp_path, checkpoint(1))
    (write(tmp_path, checkpoint(2)) / missing).unlink()
    found, complaints = newest(tmp_path)
    assert_is(found, 1)
    assert complaints


class Bomb:
    def __reduce__(self):
        return os.system, ("touch exploded",)


def resealed(folder, manifest: dict) -> None:
    (folder / "manifest.json").write_bytes(store._sealed(json.dumps(manifest).encode()))


def test_hostile_files_execute_nothing_and_reach_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "checkpoints"
    outside = tmp_path / "secret.safetensors"
    outside.write_bytes(b"secret")
    folder = write(root, checkpoint(2))
    seal, body = (folder / "manifest.json").read_bytes().split(b"\n", 1)
    manifest = json.loads(body)
    good = {path.name: path.read_bytes() for path in folder.iterdir()}
    attacks = [
        lambda: (folder / "manifest.json").write_bytes(pickle.dumps(Bomb())),
        lambda: (folder / "manifest.json").write_bytes(store._sealed(pickle.dumps(Bomb()))),
        lambda: resealed(
            folder, manifest | {"files": {"../../secret.safetensors": {"bytes": 6, "sha256": "x"}}}
        ),
        lambda: resealed(folder, manifest | {"files": {str(outside): {"bytes": 6, "sha256": "x"}}}),
        lambda: resealed(folder, manifest | {"format": 99}),
        lambda: resealed(folder, manifest | {"files": 3}),
        lambda: resealed(
            folder, manifest | {"files": {"tensors-00.safetensors": {"bytes": 10**15, "sha256": "x"}}}
        ),
        lambda: (folder / "manifest.json").write_bytes(store._sealed(b"[" * 200_000)),
        lambda: hostile_tensors(folder, manifest, pickle.dumps(Bomb())),
        lambda: hostile_tensors(folder, manifest, (2**60).to_bytes(8, "little") + b"{}"),
        lambda: hostile_tensors(folder, manifest, absurd_header()),
    ]
    for attack in attacks:
        attack()
        found, complaints = newest(root)
        assert found is None and len(complaints) == 1
        for name, data in good.items():
            (folder / name).write_bytes(data)
    assert not (tmp_path / "exploded").exists()
    assert seal and newest(root)[0] is not None


def hostile_tensors(folder, manifest: dict, data: bytes) -> None:
    """A tensor file of an attacker who knows about checksums."""
    name = "tensors-00.safetensors"
    sealed = store._durable(folder / name, data)
    resealed(folder, manifest | {"files": {name: sealed}})


def absurd_header() -> bytes:
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    return len(header).to_bytes(8, "little") + header


def test_a_full_disk_is_one_sentence_and_the_last_checkpoint_stays(tmp_path, monkeypatch):
    write(tmp_path, checkpoint(1))

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(TrainingError, match=r"No space left on device.*still valid"):
        write(tmp_path, checkpoint(2))
    assert_is(newest(tmp_path)[0], 1)
    assert os.listdir(tmp_path) == ["000000000001"]


def test_what_a_killed_writer_leaves_is_never_read(tmp_path):
    write(tmp_path, checkpoint(1))
    folder = write(tmp_path, checkpoint(2))
    shutil.move(folder, tmp_path / ".writing")
    assert_is(newest(tmp_path)[0], 1)
    write(tmp_path, checkpoint(3))
    assert_is(newest(tmp_path)[0], 3)
    assert not (tmp_path / ".writing").exists()

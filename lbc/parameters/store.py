"""Checkpoints on disk: whole or not at all, checked when read, the last few kept.

    CHECKPOINTS/000001234567/       one per checkpoint, named by its frames
        manifest.json               format, versions, counters, the plain state, and every file's checksum
        tensors-00.safetensors ...  the state's tensors, in files of at most `shard_bytes`

A checkpoint is written beside the others under a name that nobody reads, made durable, and renamed.  What
was cut short, flipped or tampered with is noticed by its checksum, and the one before it is read
instead.  Reading executes nothing: JSON and safetensors only (`lbc.parameters.snapshot`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as tensor_bytes

from lbc import __version__
from lbc.errors import TrainingError, UserError
from lbc.parameters.snapshot import Json, Tensors

FORMAT = 1
SHARD_BYTES = 512_000_000
LARGEST_MANIFEST = 256_000_000  # bytes; a larger one is no manifest of ours
_WRITING, _REPLACED = ".writing", ".replaced"


@dataclass(frozen=True)
class Checkpoint:
    frames: int
    state: Json
    tensors: Tensors
    info: dict[str, Any] = field(default_factory=dict)  # plain facts beside the state


def write(root: Path, checkpoint: Checkpoint, keep: int = 3, shard_bytes: int = SHARD_BYTES) -> Path:
    """Writes a checkpoint, then removes all but the newest `keep`."""
    final, temporary = root / f"{checkpoint.frames:012d}", root / _WRITING
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        files = {}
        for number, shard in enumerate(_shards(checkpoint.tensors, shard_bytes)):
            name = f"tensors-{number:02d}.safetensors"
            files[name] = _durable(temporary / name, tensor_bytes(shard))
        manifest = {
            "format": FORMAT,
            "lbc": __version__,
            "frames": checkpoint.frames,
            "info": checkpoint.info,
            "files": files,
            "state": checkpoint.state,
        }
        body = json.dumps(manifest).encode()
        _durable(temporary / "manifest.json", _sealed(body))
        _sync(temporary)
        if final.exists():  # of the same frames; gone for a moment only, not while it is deleted
            shutil.rmtree(root / _REPLACED, ignore_errors=True)
            os.replace(final, root / _REPLACED)
        os.replace(temporary, final)
        _sync(root)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise TrainingError(
            f"the checkpoint could not be written to '{root}' ({error.strerror}); "
            "the one before it is still valid."
        ) from error
    for old in [root / _REPLACED, *_folders(root)[keep:]]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def newest(root: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest valid checkpoint, and a sentence for every newer one that is not."""
    complaints: list[str] = []
    for folder in _folders(root):
        try:
            return _read(folder), complaints
        except (UserError, OSError) as error:
            complaints.append(f"checkpoint '{folder.name}' is damaged and was passed over: {error}")
    return None, complaints


def _read(folder: Path) -> Checkpoint:
    path = folder / "manifest.json"
    if path.stat().st_size > LARGEST_MANIFEST:
        raise UserError("its manifest is absurdly large")
    try:
        manifest = json.loads(_unsealed(path.read_bytes()))
        if manifest["format"] != FORMAT:
            raise UserError(f"it has format {manifest['format']}, this version reads {FORMAT}")
        tensors: Tensors = {}
        for name, sealed in manifest["files"].items():
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise UserError(f"it names a strange file, {name!r}")
            if (folder / name).stat().st_size != sealed["bytes"]:
                raise UserError(f"{name} has the wrong size")
            data = (folder / name).read_bytes()
            if hashlib.sha256(data).hexdigest() != sealed["sha256"]:
                raise UserError(f"{name} has the wrong checksum")
            tensors |= parse_tensors(data)
        return Checkpoint(int(manifest["frames"]), manifest["state"], tensors, manifest["info"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, SafetensorError) as error:
        raise UserError(f"it cannot be read ({type(error).__name__})") from error


def _sealed(body: bytes) -> bytes:
    """The checksum on the first line, the body behind it."""
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _unsealed(data: bytes) -> bytes:
    seal, _, body = data.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != seal:
        raise UserError("its manifest has the wrong checksum")
    return body


def _durable(path: Path, data: bytes) -> dict[str, Any]:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _sync(folder: Path) -> None:
    """Makes names durable, where the system allows it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _shards(tensors: Tensors, limit: int) -> Iterator[Tensors]:
    """Groups of tensors of at most `limit` bytes; a larger tensor has a group of its own."""
    group: Tensors = {}
    size = 0
    for name, tensor in tensors.items():
        if group and size + tensor.nbytes > limit:
            yield group
            group, size = {}, 0
        group[name] = tensor
        size += tensor.nbytes
    if group:
        yield group


def _folders(root: Path) -> list[Path]:
    """Checkpoints, the newest first."""
    if not root.is_dir():
        return []
    return sorted((p for p in root.iterdir() if p.is_dir() and p.name.isdigit()), reverse=True)

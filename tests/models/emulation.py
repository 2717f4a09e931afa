"""Kernels built for a CPU, to be launched as on a GPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

THREADS = 256


def built(source: Path, folder: Path, name: str, *options: str) -> ctypes.CDLL:
    """The library that a C++ compiler makes of a source; skips the test where there is none."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    library = folder / f"{name}.so"
    if not library.exists():
        command = [compiler, "-O1", "-std=c++17", "-shared", "-fPIC", *options, "-o", str(library)]
        subprocess.run([*command, str(source)], check=True, capture_output=True)
    return ctypes.CDLL(str(library))


def launcher(function):
    """Of (blocks, threads, tensors and whole numbers), as `nvrtc.Launch`."""

    def launch(blocks, threads, *arguments):
        assert threads == THREADS
        words = [ctypes.c_int(x) if isinstance(x, int) else ctypes.c_void_p(x.data_ptr()) for x in arguments]
        function(ctypes.c_int(blocks), *words)

    return launch

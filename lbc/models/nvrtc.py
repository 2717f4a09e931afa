"""CUDA sources compiled when they are needed, and launched: NVRTC, which comes with torch, and the driver."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

Launch = Callable[..., None]  # (number of blocks, threads of each, tensors and whole numbers)


class CompileError(Exception):
    """The first line says why there is no kernel."""


def kernels(
    path: Path,
    names: Sequence[str],
    device: torch.device,
    least: tuple[int, int],
    options: Sequence[str] = (),
) -> list[Launch] | None:
    """Those that a file declares, for devices of at least this capability; None where there are none."""
    if torch.version.hip or torch.cuda.get_device_capability(device) < least:
        return None
    try:
        return compiled(path.read_text(encoding="utf-8"), names, options, device)
    except CompileError as error:
        why = str(error).splitlines()[0]
        warnings.warn(f"the kernels of {path.name} are missing ({why}); slower ones are used.", stacklevel=3)
        return None


def compiled(source: str, names: Sequence[str], options: Sequence[str], device: torch.device) -> list[Launch]:
    """The kernels of these names, which the source declares extern "C"."""
    major, minor = torch.cuda.get_device_capability(device)
    binary = machine_code(_nvrtc(), source, [f"--gpu-architecture=sm_{major}{minor}", *options])
    driver, module = _library("libcuda.so.1", "nvcuda.dll"), ctypes.c_void_p()
    with torch.cuda.device(device):
        torch.cuda.current_stream().synchronize()  # there is a context now
        _check("cuModuleLoadData", driver.cuModuleLoadData(ctypes.byref(module), binary))
        context = ctypes.c_void_p()
        _check("cuCtxGetCurrent", driver.cuCtxGetCurrent(ctypes.byref(context)))
        return [_launcher(driver, context, module, name, device) for name in names]


def machine_code(nvrtc: ctypes.CDLL, source: str, options: Sequence[str]) -> bytes:
    program = ctypes.c_void_p()
    text, words = source.encode(), [option.encode() for option in options]
    made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None)
    _check("nvrtcCreateProgram", made)
    try:
        if nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words)):
            raise CompileError(_fetched(nvrtc, "ProgramLog", program).rstrip(b"\0").decode().strip())
        return _fetched(nvrtc, "CUBIN", program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _fetched(nvrtc: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(what, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    found = ctypes.create_string_buffer(size.value)
    _check(what, getattr(nvrtc, f"nvrtcGet{what}")(program, found))
    return found.raw


def _launcher(
    driver: ctypes.CDLL, context: ctypes.c_void_p, module: ctypes.c_void_p, name: str, device: torch.device
) -> Launch:
    kernel = ctypes.c_void_p()
    _check(name, driver.cuModuleGetFunction(ctypes.byref(kernel), module, name.encode()))

    def launch(blocks: int, threads: int, *arguments: Tensor | int) -> None:
        values = [
            ctypes.c_void_p(x.data_ptr()) if isinstance(x, Tensor) else ctypes.c_int(x) for x in arguments
        ]
        places = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)
        shape = (blocks, 1, 1, threads, 1, 1)
        status = driver.cuCtxSetCurrent(context)  # autograd's thread may not have one yet
        status = status or driver.cuLaunchKernel(kernel, *shape, 0, stream, places, None)
        if status:
            raise RuntimeError(f"CUDA kernel '{name}' was not launched: status {status}")

    return launch


def _nvrtc() -> ctypes.CDLL:
    version = str(torch.version.cuda).split(".")[0]
    beside = Path(torch.__file__).parents[1].glob(f"nvidia/*/lib/libnvrtc.so.{version}*")
    within = Path(torch.__file__).parent.glob("lib/libnvrtc*.so*")
    return _library(f"libnvrtc.so.{version}", f"nvrtc64_{version}0_0.dll", *map(str, (*beside, *within)))


def _library(*names: str) -> ctypes.CDLL:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CompileError(f"no {names[0]} here")


def _check(what: str, status: int) -> None:
    if status:
        raise CompileError(f"{what} failed with status {status}")

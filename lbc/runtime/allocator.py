"""Memory that is freed and wanted again at once, which is what training does.

Left alone, the C library hands large blocks back to the system and asks for them anew, page by page: with
Atari frames that is a quarter of an update's time in float32 and two fifths in bfloat16.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # malloc.h
_NEVER = 2**31 - 1  # bytes


def keep_freed_memory() -> None:
    """Freed blocks of any size stay with this process, in one heap for all threads (glibc; else nothing).

    One heap, because those of further threads are too small for large blocks.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in ((_TRIM_THRESHOLD, _NEVER), (_MMAP_THRESHOLD, _NEVER), (_ARENA_MAX, 1)):
            mallopt(parameter, value)

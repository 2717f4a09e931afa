"""The state of any component as plain data, and back: nothing that is loaded can execute anything.

`take` turns a value into JSON and a flat dictionary of tensors; `give` puts them back into a value of the
same structure.  Neither names a class: what is restored must exist already, so a file can fill objects
in but never create them.  Components say what belongs to their state in a class attribute::

    class Clock:
        SAVED = ("_elapsed", "restarting")

or, where attributes do not say it, in two methods: `snapshot` returns live plain data, `resume` takes it
back after it was filled in.

Understood are None, booleans, numbers, strings, lists, tuples, deques, dictionaries with plain keys, NumPy
arrays and scalars, tensors, the random generators of NumPy and PyTorch, and such objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lbc.errors import UserError

Json = Any
Tensors = dict[str, Tensor]

_PLAIN = (bool, int, float, str)
_SIGNED = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}  # same bits, for the file format


def take(value: Any, tensors: Tensors, name: str = "") -> Json:
    """Plain JSON for `value`; arrays go into `tensors`, copied, under names that begin with `name`."""
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        return {"scalar": value.item(), "dtype": value.dtype.name}
    if isinstance(value, np.ndarray):
        return _keep_array(value, tensors, name)
    if isinstance(value, Tensor):
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, (list, tuple, deque)):
        kind = "deque" if isinstance(value, deque) else type(value).__name__
        return {kind: [take(item, tensors, f"{name}.{i}") for i, item in enumerate(value)]}
    if isinstance(value, Mapping):
        return {"dict": [[take(k, tensors), take(v, tensors, f"{name}.{k}")] for k, v in value.items()]}
    if isinstance(value, np.random.Generator):
        return {"generator": take(value.bit_generator.state, tensors, name)}
    if isinstance(value, np.random.RandomState):
        return {"random_state": take(value.get_state(), tensors, name)}
    if isinstance(value, torch.Generator):
        tensors[name] = value.get_state().clone()
        return {"torch_generator": name}
    if hasattr(value, "snapshot"):
        return {"custom": take(value.snapshot(), tensors, name)}
    fields = saved(value)
    if fields is not None:
        return {"object": {key: take(getattr(value, key), tensors, f"{name}.{key}") for key in fields}}
    raise TypeError(f"{name or 'the value'} is a {type(value).__name__}, which has no plain form")


def give(value: Any, data: Json, tensors: Mapping[str, Tensor], name: str = "") -> Any:
    """`value` as it was when `data` was taken.  Objects, generators, arrays and tensors of equal shape
    are filled in place; everything else is made anew.  Returns what should stand in `value`'s place."""
    if data is None or type(data) in _PLAIN:
        return data
    if not isinstance(data, dict) or not data:
        raise _strange(name)
    kind = next(iter(data))
    content = data[kind]
    try:
        if kind == "scalar":
            return np.dtype(str(data["dtype"])).type(content)
        if kind == "array":
            return _restore_array(value, tensors[content], str(data["dtype"]))
        if kind == "tensor":
            return _restore_tensor(value, tensors[content])
        if kind in ("list", "tuple", "deque"):
            return _restore_sequence(value, kind, content, tensors, name)
        if kind == "dict":
            old = value if isinstance(value, Mapping) else {}
            return {
                (key := give(None, k, tensors)): give(old.get(key), v, tensors, f"{name}.{key}")
                for k, v in content
            }
        if kind == "generator" and isinstance(value, np.random.Generator):
            value.bit_generator.state = give(value.bit_generator.state, content, tensors)
            return value
        if kind == "random_state" and isinstance(value, np.random.RandomState):
            value.set_state(give(None, content, tensors))
            return value
        if kind == "torch_generator" and isinstance(value, torch.Generator):
            value.set_state(tensors[content].clone())
            return value
        if kind == "custom" and hasattr(value, "snapshot"):
            value.resume(give(value.snapshot(), content, tensors, name))
            return value
        if kind == "object":
            return _restore_object(value, content, tensors, name)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise _strange(name) from error
    raise _strange(name)


def saved(value: Any) -> tuple[str, ...] | None:
    """Names of the attributes that are the state of `value`; None if it does not say."""
    names = getattr(value, "SAVED", None)
    return names if isinstance(names, tuple) else None


def _keep_array(value: np.ndarray, tensors: Tensors, name: str) -> Json:
    kind = value.dtype.name
    if value.dtype == object:
        raise TypeError(f"{name} is an array of objects, which has no plain form")
    bits = np.ascontiguousarray(value).view(_SIGNED.get(kind, kind)).reshape(value.shape)
    tensors[name] = torch.from_numpy(bits.copy())
    return {"array": name, "dtype": kind}


def _restore_array(value: Any, stored: Tensor, kind: str) -> np.ndarray:
    array: np.ndarray = stored.numpy().view(np.dtype(kind)).reshape(tuple(stored.shape))
    if isinstance(value, np.ndarray) and value.shape == array.shape and value.dtype == array.dtype:
        value[...] = array
        return value
    return array.copy()


def _restore_tensor(value: Any, stored: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        if value.shape == stored.shape:
            with torch.no_grad():
                value.copy_(stored)
            return value
        return stored.to(value.device, value.dtype).clone()
    return stored.clone()


def _restore_sequence(value: Any, kind: str, content: Any, tensors: Mapping[str, Tensor], name: str) -> Any:
    old = list(value) if isinstance(value, (list, tuple, deque)) else []
    old += [None] * (len(content) - len(old))
    items = [
        give(was, item, tensors, f"{name}.{i}")
        for i, (was, item) in enumerate(zip(old, content, strict=False))
    ]
    if kind == "deque":
        return deque(items, maxlen=value.maxlen if isinstance(value, deque) else None)
    return tuple(items) if kind == "tuple" else items


def _restore_object(value: Any, content: Any, tensors: Mapping[str, Tensor], name: str) -> Any:
    fields = saved(value)
    if fields is None or set(content) != set(fields):
        raise _strange(name)
    for key in fields:
        object.__setattr__(value, key, give(getattr(value, key), content[key], tensors, f"{name}.{key}"))
    return value


def _strange(name: str) -> UserError:
    return UserError(f"the saved state does not fit this run at '{name.lstrip('.') or 'its root'}'.")

"""CpuShmTensorWrapper as LMCache pickles it, without LMCache and without torch.

Why this file: the server reads the pickle of an exported tensor, so the bytes
have to be those that the real classes give. A pickle names a class by its
module and its name, and an element type of torch by "torch" and its name; so
empty classes in modules of those names give the very same bytes.

The modules are put into sys.modules only where nothing of that name is loaded.
"""

import pickle
import sys
import types

MODULE = "lmcache.v1.platform.cpu.shm"


def _module(name):
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
    return sys.modules[name]


class _ElementType:
    """Stands for a torch.dtype: pickled as the global torch.<name>."""

    __module__ = "torch"

    def __init__(self, name):
        self.name = name
        self.__module__ = "torch"

    def __reduce__(self):
        return self.name


def element_type(name):
    torch = _module("torch")
    if not hasattr(torch, name):
        setattr(torch, name, _ElementType(name))
    return getattr(torch, name)


def _wrapper_class():
    parts = MODULE.split(".")
    for i in range(1, len(parts) + 1):
        _module(".".join(parts[:i]))
    module = sys.modules[MODULE]
    if not hasattr(module, "CpuShmTensorWrapper"):
        made = type("CpuShmTensorWrapper", (), {"__module__": MODULE})
        module.CpuShmTensorWrapper = made
    return module.CpuShmTensorWrapper


def strides(shape):
    """The steps of a dense tensor, in elements."""
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return tuple(reversed(steps))


def pickled(shm_name, nbytes, dtype, shape):
    """The pickle, protocol 4, of the wrapper of a dense tensor at the start of a segment."""
    cls = _wrapper_class()
    wrapper = cls.__new__(cls)
    wrapper.__dict__.update({
        "shm_name": shm_name,
        "nbytes": nbytes,
        "handle": None,
        "dtype": element_type(dtype),
        "shape": tuple(shape),
        "stride": strides(shape),
        "storage_offset": 0,
        "device_uuid": "cpu",
    })
    return pickle.dumps(wrapper, protocol=4)

"""Keeps PyTorch to this session's share of a GPU.

Slipway puts this folder into PYTHONPATH where a session holds a part of a
device. Launch with --uncooperative, or unset SLIPWAY_GPU_COOPERATIVE, to do
without. Nothing here may ever keep a program from running.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Watch:
    """Waits for torch.cuda to be imported; imports nothing itself."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch.cuda":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                fraction = float(os.environ["SLIPWAY_GPU_FRACTION"])
                # Queued until the program first uses a device, so that importing
                # torch does not make a context, and forks stay possible.
                module._lazy_call(lambda: _limit(module, fraction))
            except Exception:
                pass

        spec.loader.exec_module = exec_module
        return spec


def _limit(cuda, fraction):
    try:
        for device in range(cuda.device_count()):
            cuda.set_per_process_memory_fraction(fraction, device)
    except Exception:
        pass


def _others():
    """Runs the sitecustomize that this one stands before, if there is one."""
    paths = [p for p in sys.path if os.path.abspath(p or os.curdir) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("SLIPWAY_GPU_COOPERATIVE") == "1":
    sys.meta_path.insert(0, _Watch())
_others()

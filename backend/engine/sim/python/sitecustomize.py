"""What the Python of a simulated session knows of the session that it is in."""


def settle():
    import os
    import select
    import sys
    import time

    directory, hostname, cpus = os.environ.pop("SLIPWAY_PYTHON", "/\n\n1").split("\n")
    own = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != own]
    others = os.environ.pop("PYTHONPATH", "").split(":")[1:]
    if others:
        os.environ["PYTHONPATH"] = ":".join(others)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PWD"] = directory
    try:
        os.chdir(directory)
    except OSError:
        pass  # it has been removed
    # What sleeps by the clock until a moment is not to be had, what waits for a while is.
    time.sleep = lambda seconds: select.select([], [], [], seconds) and None
    os.cpu_count = lambda: int(cpus)
    uname = os.uname()
    os.uname = lambda: os.uname_result((uname.sysname, hostname, uname.release, uname.version, uname.machine))

    class Elsewhere:
        """Says of libraries that people expect where they are not."""

        names = {"numpy", "pandas", "torch", "scipy", "sklearn", "matplotlib", "tensorflow", "jax", "PIL", "requests", "pip", "tqdm", "transformers"}

        @classmethod
        def find_spec(cls, name, path=None, target=None):
            if name in cls.names:
                raise ModuleNotFoundError(f"No module named {name!r}: the Python of a simulated session has the standard library alone", name=name)

    sys.meta_path.append(Elsewhere)


settle()
del settle

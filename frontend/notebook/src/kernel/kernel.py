"""Runs the cells of a notebook and tells what they bring forth."""

import ast
import base64
import builtins
import inspect
import io
import json
import linecache
import pprint
import sys
import time
import traceback
import types

import _slipway as page

namespace = sys.modules["__main__"].__dict__
in_cells = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Stream(io.TextIOBase):
    """What is printed, on its way to the page."""

    def __init__(self, name):
        self.name = name

    encoding = "utf-8"

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        page.stream(self.name, text)
        return len(text)


def pause(seconds):
    """Sleeps in short pieces, so that it can be interrupted."""
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        page.pause(min(left, 0.05) * 1000)


def ask(prompt=""):
    line = page.ask(str(prompt))
    if line is None:
        raise EOFError("no line was given")
    return line


methods = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/json": "_repr_json_",
}


def plain(value):
    text = repr(value)
    if len(text) > 80 and isinstance(value, (dict, list, tuple, set, frozenset)):
        return pprint.pformat(value, width=100, compact=True, sort_dicts=False)
    return text


def bundle(value):
    """All forms in which a value can be shown, by their types."""
    forms = {"text/plain": plain(value)}
    if isinstance(value, type):
        return forms
    if callable(many := getattr(value, "_repr_mimebundle_", None)):
        made = many()
        forms.update(made[0] if isinstance(made, tuple) else made or {})
    for kind, name in methods.items():
        method = getattr(value, name, None)
        made = method() if callable(method) else None
        if isinstance(made, tuple):
            made = made[0]
        if made is not None:
            forms[kind] = base64.b64encode(made).decode() if isinstance(made, bytes) else made
    return forms


def display(*values, **_):
    """Shows values in the richest form that they have."""
    for value in values:
        page.emit(json.dumps({"type": "display", "data": bundle(value)}))


def clear_output(wait=False):
    page.emit(json.dumps({"type": "clear", "wait": bool(wait)}))


class Shown:
    """A text or bytes that are shown as what they are."""

    kind = "_repr_html_"

    def __init__(self, data=None, filename=None):
        if data is None and filename is not None:
            mode = "rb" if self.kind in ("_repr_png_", "_repr_jpeg_") else "r"
            with open(filename, mode) as file:
                data = file.read()
        self.data = data
        setattr(self, self.kind, lambda: data)

    def __repr__(self):
        return f"<{type(self).__name__} object>"


class HTML(Shown):
    kind = "_repr_html_"


class Markdown(Shown):
    kind = "_repr_markdown_"


class SVG(Shown):
    kind = "_repr_svg_"


class Image(Shown):
    kind = "_repr_png_"

    def __init__(self, data=None, filename=None):
        if str(filename or "").lower().endswith((".jpg", ".jpeg")):
            self.kind = "_repr_jpeg_"
        if isinstance(data, str):
            data, filename = None, data
        super().__init__(data, filename)


def furnish():
    """Puts what notebooks take for granted into the world of the cells."""
    sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")
    time.sleep, builtins.input, builtins.display = pause, ask, display
    shown = types.ModuleType("IPython.display", "The part of IPython by which cells show things.")
    for thing in (display, clear_output, HTML, Markdown, SVG, Image):
        setattr(shown, thing.__name__, thing)
    ipython = types.ModuleType("IPython")
    ipython.display = shown
    sys.modules["IPython"], sys.modules["IPython.display"] = ipython, shown
    sys.path.insert(0, "")
    namespace["__builtins__"] = builtins
    for name in [name for name in namespace if not name.startswith("__")]:
        del namespace[name]


def hint(error):
    if isinstance(error, ModuleNotFoundError):
        error.add_note("The Python of this simulated session has its standard library only, and nothing can be fetched. A real session has what its image holds.")


def fail(error):
    """Tells an error without the frames that belong to this file."""
    frames = error.__traceback__
    while frames is not None and not frames.tb_frame.f_code.co_filename.startswith("<cell "):
        frames = frames.tb_next
    hint(error)
    lines = traceback.format_exception(type(error), error, frames)
    page.emit(json.dumps({"type": "error", "ename": type(error).__name__, "evalue": str(error), "traceback": "".join(lines).rstrip("\n").split("\n")}))


async def run(tree, name, mode):
    code = compile(tree, name, mode, flags=in_cells)
    result = eval(code, namespace)
    if code.co_flags & inspect.CO_COROUTINE:
        result = await result
    return result


def refuse_magic(source):
    for number, line in enumerate(source.split("\n"), 1):
        if line.startswith(("%", "!")):
            raise SyntaxError(f"line {number}: commands such as {line.split()[0]} are not for this Python; use the session's terminal")


async def execute(source, count):
    """Runs one cell and reports whether it went well."""
    name = f"<cell {count}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        try:
            tree = compile(source, name, "exec", flags=ast.PyCF_ONLY_AST | in_cells)
        except SyntaxError:
            refuse_magic(source)
            raise
        last = tree.body[-1] if tree.body else None
        shows = isinstance(last, ast.Expr) and not source.rstrip().endswith(";")
        if shows:
            tree.body.pop()
        await run(tree, name, "exec")
        if shows:
            value = await run(ast.Expression(last.value), name, "eval")
            if value is not None:
                namespace["_"] = value
                page.emit(json.dumps({"type": "result", "data": bundle(value)}))
        return True
    except BaseException as error:
        fail(error)
        return False


furnish()

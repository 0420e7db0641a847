"""structgen: language models that write exactly what a constraint allows.

``__init__.pyi`` lists what is exported. Each name is loaded when it is first asked for, with what it needs and no more.
"""

from contextlib import suppress as _suppress
from importlib import import_module as _import_module
from pathlib import Path as _Path
from sys import modules as _modules

__version__ = "0.1.0"

# "from MODULE import NAME as NAME", a line each.
_WORDS = [line.split() for line in _Path(__file__).with_suffix(".pyi").read_text("utf-8").splitlines()]
_MODULE_OF = {words[3]: words[1] for words in _WORDS if words[:1] == ["from"]}
__all__ = sorted(["__version__", *_MODULE_OF])


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        module = _modules[__name__]  # which lets Python say what name was meant
        raise AttributeError(f"module 'structgen' has no attribute {name!r}{_as_method(name)}", name=name, obj=module)
    value = globals()[name] = getattr(_import_module(_MODULE_OF[name]), name)
    return value


def _as_method(name: str) -> str:
    """What to write for a name that is a method of the generator."""
    with _suppress(ImportError):
        if name[0] != "_" and callable(getattr(__getattr__("Generator"), name, None)):
            return f"; it is a method of generators: structgen.Generator().{name}(...)"
    return ""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

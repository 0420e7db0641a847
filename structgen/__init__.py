"""structgen: language models that write exactly what a constraint allows.

``__init__.pyi`` lists what is exported. Each name is loaded when it is first asked for, with what it needs and no more.
"""

from importlib import import_module as _import_module
from pathlib import Path as _Path
from sys import modules as _modules

__version__ = "0.1.0"

# "from MODULE import NAME as EXPORT", a line each.
_WORDS = [line.split() for line in _Path(__file__).with_suffix(".pyi").read_text("utf-8").splitlines()]
_EXPORTS = {words[5]: (words[1], words[3]) for words in _WORDS if words[:1] == ["from"]}
__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        module = _modules[__name__]  # which lets Python say what name was meant
        raise AttributeError(f"module 'structgen' has no attribute {name!r}", name=name, obj=module)
    module, there = _EXPORTS[name]
    value = getattr(_import_module(module), there)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

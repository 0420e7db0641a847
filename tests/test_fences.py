"""What is private in other packages is touched by one module each, and the versions that have it are bounded."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from functools import cache

import pytest

from tests.package_sources import PATHS, ROOT, parsed, text, tree

PROJECT = tomllib.loads((ROOT.parent / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = ("jit", "lark", "llamacpp", "transformers")
REQUIREMENTS = [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]] + [
    requirement for extra in EXTRAS for requirement in PROJECT["optional-dependencies"][extra]
]


@dataclass(frozen=True)
class Door:
    """Something private of another package.

    Attributes:
        package: whose it is, as pyproject.toml bounds it.
        pattern: what code that touches it looks like.
        modules: who may (paths; a folder ends in /).
    """

    package: str
    pattern: str
    modules: tuple[str, ...]


DOORS = [
    Door(
        "python",
        r"\bre\._(?!_)|\bimport _sre\b|\bsre_(?:parse|constants|compile)\b",
        ("core/grammars/python_regex.py",),
    ),
    Door(
        "lark",
        r"\blark\.load_grammar\b|\b_parse_table\b|\blark\.utils\b|\.scanner\b",
        ("core/grammars/lark_internals.py",),
    ),
    Door("torch", r"torch\.ops\b", ("generation/models/packed_linear.py",)),
    Door("torch", r"\._modules\b", ("generation/speculative/layer_skip.py",)),
    Door("torch", r"torch\._C\b|_storage_Use_Count", ("integrations/transformers/masking.py",)),
    Door("transformers", r"\"_beam_search\"|\braw_logits\b", ("integrations/transformers/callers.py",)),
    Door("transformers", r"\b_attn_implementation\b", ("generation/models/transformers_model.py",)),
    Door("pydantic", r"adapter\._config\b", ("core/python_types/schemas.py",)),
    Door("transformers", r"continuous_batching\.|\.logit_processor\b", ("integrations/transformers/continuous.py",)),
    Door("cyllama", r"/proc/self/mem|\.from_address\b", ("generation/models/llamacpp/logits_memory.py",)),
    Door("numba", r"\bnumba\.core\b", ("core/kernels/build.py", "core/kernels/memory.py")),
]


def bare(source: str) -> ast.Module:
    """The source without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return tree


@cache
def code(path: str) -> str:
    """A module's source without comments and docstrings."""
    return ast.unparse(bare(text(path)))


def touches(path: str, door: Door) -> bool:
    """Whether a module's code has what a door is about; most have it not even in words."""
    one_line = re.sub(r"\s*\n\s*(?=\.)", "", text(path))
    return bool(re.search(door.pattern, one_line) and re.search(door.pattern, code(path)))


def test_a_door_has_one_keeper() -> None:
    for door in DOORS:
        touching = [path for path in PATHS if touches(path, door)]
        assert [path for path in touching if not path.startswith(door.modules)] == [], door
        assert touching, f"nobody uses {door}: take the fence down"


def test_versions_are_bounded() -> None:
    for package in {door.package for door in DOORS}:
        found = [requirement for requirement in REQUIREMENTS if re.match(rf"{package}\b", requirement)]
        assert found and all(re.search(r">=[\d.]+.*<[\d.]+", requirement) for requirement in found), found


def test_no_other_private_module_is_imported() -> None:
    """Modules of others whose names begin with an underscore, beyond the doors above."""
    doors = {module for door in DOORS for module in door.modules}
    found = []
    for path in PATHS:
        for node in ast.walk(tree(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            private = [name for name in names if name != "__future__" and re.search(r"(?:^|\.)_(?!_)", name)]
            found += [(path, name) for name in private if path not in doors]
    assert found == []


def test_a_stranger_at_a_door_is_seen() -> None:
    for source in ("import re._parser", "x = torch.ops.mkl.f", "from lark.utils import logger", "m._modules = {}"):
        assert any(re.search(door.pattern, ast.unparse(bare(source))) for door in DOORS), source
    documented = ast.unparse(bare('"""Of ``re._parser``."""\nx = re.compile("a")'))
    assert not any(re.search(door.pattern, documented) for door in DOORS)


def is_address_of_nameless(node: ast.AST) -> bool:
    """``f(…).ctypes.data`` or ``f(…).buffer_info()``: nothing keeps the memory while its address is in use."""
    if isinstance(node, ast.Call):
        node = node.func
        return isinstance(node, ast.Attribute) and node.attr == "buffer_info" and isinstance(node.value, ast.Call)
    data = (
        isinstance(node, ast.Attribute) and node.attr in ("data", "data_as") and isinstance(node.value, ast.Attribute)
    )
    if not data:
        return False
    inner = node.value  # type: ignore[attr-defined]
    return inner.attr == "ctypes" and isinstance(inner.value, ast.Call)


def test_what_kernels_get_has_a_name() -> None:
    found = [
        (path, ast.unparse(node)) for path in PATHS for node in ast.walk(tree(path)) if is_address_of_nameless(node)
    ]
    assert found == []
    for source in ("run(np.array([1]).ctypes.data)", "array('q', [1]).buffer_info()[0]"):
        assert any(is_address_of_nameless(node) for node in ast.walk(parsed(source)))


def test_what_pydantic_keeps_is_where_it_is_looked_for() -> None:
    """In the version that is installed; of another one, the error says which are known."""
    import pydantic

    from structgen.core.python_types.schemas import KNOWN, config_of
    from structgen.errors import ConstraintError

    first, end = (".".join(map(str, version)) for version in KNOWN)
    requirement = next(one for one in PROJECT["dependencies"] if one.startswith("pydantic"))
    assert requirement == f"pydantic>={first},<{end.removesuffix('.0')}"
    config = pydantic.ConfigDict(str_max_length=3, ser_json_bytes="base64")
    assert config_of(pydantic.TypeAdapter(list[str], config=config)) == config
    assert config_of(pydantic.TypeAdapter(list[str])) is None
    with pytest.raises(ConstraintError, match=r"pydantic .* keeps the settings .* expected pydantic>=2\.7,<3\.0"):
        config_of(object())  # type: ignore[arg-type]

"""Faults, one at a time: small changes of a module's syntax tree of which each should make some test fail.

Left alone: annotations, docstrings, messages of errors, imports, what is decided while typing only.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """A fault: where it is, and what it changes (a name that outlives edits elsewhere)."""

    function: str
    line: int
    change: str
    place: int  # which node of the tree, in order
    variant: int  # which of its variants


def mutants(source: str) -> list[Mutant]:
    """All faults of a module, in the order of its text. Equal changes in one function are numbered."""
    found: list[Mutant] = []
    taken: dict[tuple[str, str], int] = {}
    for place, (node, function) in enumerate(_places(ast.parse(source))):
        for variant, new in enumerate(_variants(node)):
            change = f"{_text(node)} -> {_text(new)}"
            number = taken[function, change] = taken.get((function, change), 0) + 1
            label = change if number == 1 else f"{change} (#{number})"
            found.append(Mutant(function, node.lineno, label, place, variant))
    return found


def faulty(source: str, mutant: Mutant) -> ast.Module:
    """The module's tree with one fault."""
    tree = ast.parse(source)
    old = list(_places(tree))[mutant.place][0]
    new = _variants(old)[mutant.variant]
    for parent in list(ast.walk(tree)):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list):
                value[:] = [new if item is old else item for item in value]
    return ast.fix_missing_locations(tree)


def _text(node: ast.AST) -> str:
    """What a node says, of branches and loops the head only."""
    if isinstance(node, ast.If):
        return f"if {_text(node.test)}"
    return " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())


def _places(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Statements and expressions that may be changed, with the function they stand in."""
    yield from _inside(tree, "")


def _inside(parent: ast.AST, function: str) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_comment"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or _is_left_alone(node):
                continue
            inner = function
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                inner = f"{function}.{node.name}".lstrip(".")
            if isinstance(node, (ast.expr, ast.stmt)):
                yield node, inner
            yield from _inside(node, inner)


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert, ast.JoinedStr)):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    return isinstance(node, ast.If) and _text(node.test) == "TYPE_CHECKING"


def _variants(node: ast.AST) -> list[ast.AST]:
    """What may stand in the place of a node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        return [ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)]
    if isinstance(node, ast.BoolOp):
        return [ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)]
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        return [ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
        return [node.operand]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [ast.Constant(not node.value)]
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return [ast.Constant(node.value + 1)]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in NAMES:
        return [ast.Name(NAMES[node.id], ast.Load())]
    return _statements(node)


def _statements(node: ast.AST) -> list[ast.AST]:
    """Statements left out, loops left early or not, conditions taken for granted."""
    if isinstance(node, (ast.AugAssign, ast.Continue)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        return [ast.Pass()]
    if isinstance(node, ast.Break):
        return [ast.Continue()]
    if isinstance(node, (ast.If, ast.IfExp)):
        changed = [copy.copy(node), copy.copy(node)]
        changed[0].test, changed[1].test = ast.Constant(True), ast.Constant(False)
        return list(changed)
    if isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)) and node.generators[0].ifs:
        plain = copy.deepcopy(node)
        plain.generators[0].ifs = []
        return [plain]
    return []

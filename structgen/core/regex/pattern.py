"""JSON Schema ``pattern`` to an automaton over the UTF-8 bytes of the string it constrains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.automata.calls import determinise
from structgen.core.regex.charset import partition
from structgen.core.regex.dfa import MAX_STATES, Dfa, combine, from_class_table, too_complex
from structgen.core.regex.dfa_cache import keeps_automata
from structgen.core.regex.ecma_ast import START, Anchor, Concat, Look, Node
from structgen.core.regex.ecma_parser import parse
from structgen.core.regex.lookaround import determinise_lookarounds
from structgen.core.regex.nfa import Program, search_program
from structgen.errors import TooComplexError

MAX_ENTRIES = 1 << 24
"""Entries of a table over classes of characters; also bounds the sets of nodes that are its states."""
MAX_STEPS = 2_000_000_000
"""Nodes that are looked at in making a table; a few seconds."""
BYTE_STATES = 2
"""``max_states`` bounds the states between characters; all together may be this many times more."""


@keeps_automata
def pattern_dfa(pattern: str, *, max_states: int = MAX_STATES) -> Dfa:
    """The texts in which the ECMA-262 regular expression ``pattern`` is found somewhere (it is not anchored).

    Exact for lookarounds and word boundaries too. Raises PatternError for an expression that is not legal or not
    regular (backreferences), and TooComplexError when an automaton on the way would exceed ``max_states``.
    Cached for the process.
    """
    return search_dfa(parse(pattern), max_states)


def full_match_dfa(expression: str, *, max_states: int = MAX_STATES) -> Dfa:
    """The texts that ``expression`` matches as a whole."""
    return search_dfa(Concat((START, parse(expression), Anchor(True))), max_states)


def search_dfa(node: Node, max_states: int = MAX_STATES) -> Dfa:
    """The texts in which ``node`` is found somewhere."""
    looks, remaining = _leading_lookaheads(node)
    if not looks:
        return _search(node, max_states)
    # ^(?!a)(?=b)c holds where ^b and ^c are found and ^a is not: plain automata, one for each.
    parts = [_search(Concat((START, look.body)), max_states) for look in looks]
    parts.append(_search(Concat((START, remaining)), max_states))
    wanted = sum(1 << i for i, look in enumerate(looks) if not look.negative) | 1 << len(looks)
    return combine(parts, lambda labels: labels == wanted, max_states)


def _leading_lookaheads(node: Node) -> tuple[list[Look], Node]:
    """The lookaheads right after a leading ``^``, and what follows them."""
    parts: tuple[Node, ...] = node.parts if isinstance(node, Concat) else ()
    if not parts or parts[0] != START:
        return [], node
    looks: list[Look] = []
    for part in parts[1:]:
        if not (isinstance(part, Look) and not part.lookbehind):
            break
        looks.append(part)
    return looks[:63], Concat(parts[1 + len(looks[:63]) :])


def _search(node: Node, max_states: int) -> Dfa:
    program, start = search_program(node, max_states)
    segments, masks = partition(list(program.sets))
    if program.looks:
        table, accepting = determinise_lookarounds(program, start, masks, max_states)
    else:
        table, accepting = _determinise(program, start, masks, max_states)
    return from_class_table(table, accepting, segments, BYTE_STATES * max_states)


def _determinise(program: Program, start: int, masks: Sequence[int], max_states: int):  # type: ignore[no-untyped-def]
    words = len(program.nodes) // 64 + 1
    fitting = min(max_states, MAX_ENTRIES // len(masks), 2 * MAX_ENTRIES // words)
    if len(program.sets) * len(masks) > 4 * MAX_ENTRIES or not fitting:
        raise TooComplexError(
            f"the expression distinguishes {len(masks)} classes of characters, by {len(program.sets)} sets",
            budget="classes of characters",
            limit=4 * MAX_ENTRIES,
        )
    table, accepting, count = determinise(
        program.array(), start, _members(len(program.sets), masks), fitting, MAX_STEPS
    )
    if count == -1:
        raise too_complex(fitting, "the expression")
    if count < 0:
        raise TooComplexError(
            f"the automaton of the expression takes more than {MAX_STEPS} steps to make",
            budget="automaton steps",
            limit=MAX_STEPS,
        )
    return table, accepting


def _members(sets: int, masks: Sequence[int]) -> npt.NDArray[np.uint8]:
    """uint8[sets, classes], whether a set holds a class; at least one set."""
    size = max(1, sets)
    data = b"".join(mask.to_bytes(-(-size // 8), "little") for mask in masks)
    bits = np.unpackbits(np.frombuffer(data, np.uint8).reshape(len(masks), -1), axis=1, bitorder="little")
    return np.ascontiguousarray(bits[:, :size].T)

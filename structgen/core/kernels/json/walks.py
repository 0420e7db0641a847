"""Walks over the tries of tokens: which of their tokens may follow a configuration, asked of each byte."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.distinct import step
from structgen.core.kernels.json.emit import clear_subtree, emit_subtree, has_subtree, ready, set_token, set_tokens
from structgen.core.kernels.json.following import (
    declared_level,
    follows_freely,
    is_free,
    may_follow,
    note_declared,
    note_following,
)
from structgen.core.kernels.json.frames import load
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.registers import node, restore_level, restore_stack, save_level, save_stack
from structgen.core.kernels.json.strings import hash_byte, is_duplicate
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.json.unique_items_candidates import rivals
from structgen.core.kernels.memory import size


@internal
def set_group(m, group, out, length, least, most, frame, hashed):
    """Set the tokens of a remainder group: those whose text before the quote fits the string or key they close.

    ``members`` int32[M, 4]: token, code points before the quote, place and number of the bytes before it in
    ``token_bytes`` (decoded).
    """
    ready(m, out)
    for i in range(group_of(m, group), group_of(m, group + 1)):
        points = member_field(m, 4 * i + 1)
        if length + points < least or (most >= 0 and length + points > most):
            continue
        if frame >= 0:
            value = hashed
            for position in range(member_field(m, 4 * i + 2), member_field(m, 4 * i + 2) + member_field(m, 4 * i + 3)):
                value = hash_byte(value, token_byte(m, position))
            if is_duplicate(m, frame, value):
                continue
        set_token(m, member_field(m, 4 * i + 0), out)


@internal
def walk(m, lo, hi, out, grouped, length, least, most, frame, hashed):
    """Set the tokens of ``nodes[lo:hi]`` that can follow the configuration in ``regs``. Depth first, no recursion.

    The nodes hold tokens, or if ``grouped`` remainder groups, see `set_group`.
    """
    ready(m, out)
    if lo >= hi:
        return ALIVE
    base, known_kinds = node(m, lo, NODE_DEPTH), reg(m, KNOWN)
    save_stack(m, 0)
    note_following(m, 0)
    half = size(m, stack) // 2
    forks = half  # places of (node, next alternative, alternatives) of the nodes on the path that have several
    i = lo
    alt = 0
    while True:
        alt = 0
        while forks > half and i >= node(m, stack(m, forks - 3), NODE_END):
            if stack(m, forks - 2) < stack(m, forks - 1):
                i = stack(m, forks - 3)
                alt = stack(m, forks - 2)
                set_stack(m, forks - 2, stack(m, forks - 2) + 1)
                break
            forks -= 3
        if i >= hi:
            return ALIVE
        depth = node(m, i, NODE_DEPTH) - base
        level = 5 * depth
        byte = node(m, i, NODE_BYTE)
        if not may_follow(m, depth, byte):
            i = node(m, i, NODE_END)
            continue
        if known_kinds and not grouped and has_subtree(m, i, node(m, i, NODE_END), known_kinds):
            i = node(m, i, NODE_END)
            continue
        if not grouped and follows_freely(m, depth, i):
            emit_subtree(m, i, node(m, i, NODE_END), out)
            i = node(m, i, NODE_END)
            continue
        if level + 10 > half or forks + 3 > size(m, stack):
            return FULL
        restore_stack(m, level)
        set_reg(m, POSITION, reg(m, WRITTEN) + node(m, i, NODE_DEPTH))
        status = step(m, byte, alt)
        if status >= MISS:
            return status
        if alt == 0 and reg(m, ALTERNATIVES) > 1:
            set_stack(m, forks, i)
            set_stack(m, forks + 1, 1)
            set_stack(m, forks + 2, reg(m, ALTERNATIVES))
            forks += 3
        if status == DEAD:
            i = node(m, i, NODE_END)
            continue
        if node(m, i, NODE_END) > i + 1:
            if not grouped and class_of(m, i) >> NEVER_KIND == 0 and is_free(m):
                emit_subtree(m, i, node(m, i, NODE_END), out)
                i = node(m, i, NODE_END)
                continue
            save_stack(m, level + 5)
            note_following(m, depth + 1)
        token = node(m, i, NODE_TOKEN)
        if token >= 0:
            if not grouped:
                set_tokens(m, token, out)
            else:
                set_group(m, token, out, length, least, most, frame, hashed)
        i += 1


@internal
def exact(m, lo, hi, out):
    """`walk` over a trie of tokens."""
    none = -1
    return walk(m, lo, hi, out, False, 0, 0, none, none, 0)


@internal
def declared_keys(m, lo, hi, out):
    """Correct the mask of an open object's key for the tokens that keep to *declared* keys.

    The mask was made as if every key were undeclared. Walks the tokens as long as they are a prefix of declared keys;
    those that close on one are cleared and done again exactly.
    """
    ready(m, out)
    save_level(m, 0)
    note_declared(m, declared_level(m, 0))
    frame = reg(m, FRAME)
    i = lo
    while i < hi:
        depth = node(m, i, NODE_DEPTH)
        level = 5 * depth
        byte = node(m, i, NODE_BYTE)
        if not may_follow(m, declared_level(m, depth), byte):
            i = node(m, i, NODE_END)
            continue
        if level + 10 > size(m, level_state):
            return FULL
        restore_level(m, level)
        set_reg(m, POSITION, reg(m, WRITTEN) + node(m, i, NODE_DEPTH))
        if reg(m, Q) == KEY and byte == 0x22:
            index = reg(m, B) & MASK20
            record = load(m, frame) & LOW32
            entry = grammar(m, record + O_ENTRIES) + E_SIZE * index
            if index < (reg(m, B) >> 20) & MASK20 and grammar(m, entry + E_LENGTH) == reg(m, B) >> 40:
                clear_subtree(m, i, node(m, i, NODE_END), out)
                status = exact(m, i, node(m, i, NODE_END), out)
                if status >= MISS:
                    return status
            i = node(m, i, NODE_END)
            continue
        status = step(m, byte, 0)
        if status >= MISS:
            return status
        if status == DEAD or reg(m, Q) & ~15 != KEY or reg(m, FRAME) != frame:
            i = node(m, i, NODE_END)
            continue
        set_tokens(m, node(m, i, NODE_TOKEN), out)
        if node(m, i, NODE_END) > i + 1:
            save_level(m, level + 5)
            note_declared(m, declared_level(m, depth + 1))
        i += 1
    return ALIVE


@internal
def _may_go_on(m, byte):
    """Whether a byte may come in a value string, if that need not be another than those before."""
    text = reg(m, Q) == STRING + BODY and byte >= 0x20 and byte != 0x22 and byte != BACKSLASH
    return not text or pool(m, (reg(m, B) & LOW32) * 256 + byte) >= 0


@internal
def along_rivals(m, lo, hi, out):
    """Make anew what a mask says of the tokens behind which the open string may become an item that is there.

    And of those that end it. Others stay as they are.
    """
    frame = reg(m, FRAME)
    save_level(m, 0)
    i = lo
    while i < hi:
        level = node(m, i, NODE_DEPTH)
        if 5 * level + 10 > size(m, level_state):
            return FULL
        end, position = node(m, i, NODE_END), reg(m, WRITTEN) + level
        restore_level(m, 5 * level)
        if not _may_go_on(m, node(m, i, NODE_BYTE)):
            i = end
            continue
        set_reg(m, POSITION, position)
        status = step(m, node(m, i, NODE_BYTE), 0)
        if status >= MISS:
            return status
        if status == ALIVE and reg(m, Q) & ~15 == STRING and reg(m, FRAME) == frame:
            if rivals(m, frame, position + 1) == 0:
                i = end
            else:
                save_level(m, 5 * level + 5)
                i += 1
            continue
        clear_subtree(m, i, end, out)
        if status == ALIVE:
            restore_level(m, 5 * level)
            status = exact(m, i, end, out)
            if status >= MISS:
                return status
        i = end
    return ALIVE

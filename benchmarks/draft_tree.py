"""Draw a draft tree of a real output: what was proposed, what the constraint pruned, what the model accepted.

    python benchmarks/draft_tree.py docs/images/draft_tree.svg

Writes JSON with the built-in model and draws the tree with the most accepted and pruned tokens of those that fit.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import structgen
from structgen.generation.speculative.draft_options import make_speculator
from structgen.generation.speculative.speculator import DraftedSequence
from structgen.generation.speculative.tree import Node

SCHEMA = {
    "type": "object",
    "properties": {
        "people": {
            "type": "array",
            "minItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "maxLength": 30},
                    "age": {"type": "integer", "minimum": 0},
                    "city": {"enum": ["London", "Berlin", "Paris"]},
                },
                "required": ["name", "age", "city"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["people"],
}
PROMPT = "Ada Lovelace, 36, lives in London. Alan Turing, 41, lives in Berlin. Marie Curie, 66, lives in Paris."
MOST_BOXES = 24
CELL_WIDTH, CELL_HEIGHT, BOX = 118, 38, 100
COLORS = {"root": "#d0d7de", "accepted": "#7ccf8f", "rejected": "#eceff2", "pruned": "#f6b3ae"}


@dataclass(frozen=True)
class Box:
    """A token in the picture; ``parent`` is the place of the box before it in the list."""

    text: str
    kind: str
    source: str
    depth: int
    parent: int


class Finder:
    """Looks at each tree after it was judged, and keeps the one that shows most."""

    def __init__(self, tokens: tuple[bytes, ...]) -> None:
        self.tokens = tokens
        self.best: list[Box] = []
        self.before, self.score = "", 0

    def watch(self) -> None:
        """Look at all rows from now on."""
        finder, begin, finish = self, DraftedSequence.begin, DraftedSequence.finish
        seen: dict[DraftedSequence, tuple[int, str, dict[Node, Any]]] = {}

        def watched_begin(row: DraftedSequence) -> None:
            tree = row.tree
            offered = {node: dict(node.proposals) for node in (tree.root, *tree.nodes)}
            seen[row] = len(row.output.pending), row.output.text, offered
            begin(row)

        def watched(row: DraftedSequence, logits: Any) -> list[int]:
            tree, (read, before, offered) = row.tree, seen.pop(row)
            kept = finish(row, logits)
            accepted = {index - read for index in kept if index >= read}
            boxes = finder.boxes(tree.root, offered, accepted)
            score = len(accepted) * [box.kind for box in boxes].count("pruned")
            if score > finder.score and len(boxes) <= MOST_BOXES:
                finder.best, finder.before, finder.score = boxes, before, score
            return kept

        DraftedSequence.begin, DraftedSequence.finish = watched_begin, watched  # type: ignore[method-assign,assignment]

    def boxes(self, root: Node, offered: dict[Node, Any], accepted: set[int]) -> list[Box]:
        """The tree from its root on, depth first."""
        boxes = [Box(self.spell(root.token), "root", "", 0, -1)]

        def below(node: Node, place: int) -> None:
            for token, evidence in offered[node].items():
                child = node.child(token)
                source = "+".join(str(each[0]) for each in evidence)
                if child is None:
                    boxes.append(Box(self.spell(token), "pruned", source, node.depth + 1, place))
                elif child.index >= 0:
                    kind = "accepted" if child.index in accepted else "rejected"
                    boxes.append(Box(self.spell(token), kind, source, node.depth + 1, place))
                    below(child, len(boxes) - 1)

        below(root, 0)
        return boxes

    def spell(self, token: int) -> str:
        """A token to read."""
        return self.tokens[token].decode("utf-8", errors="replace").replace(" ", "·").replace("\n", "↵")


def svg(boxes: list[Box], before: str) -> str:
    """The tree from left to right, a leaf a line."""
    children: dict[int, list[int]] = {}
    for place, box in enumerate(boxes):
        children.setdefault(box.parent, []).append(place)
    lines: dict[int, int] = {}
    order = {"accepted": 0, "rejected": 1, "pruned": 2}

    def layout(place: int, line: int) -> int:
        lines[place] = line
        for number, child in enumerate(sorted(children.get(place, []), key=lambda at: order[boxes[at].kind])):
            line = layout(child, line + (number > 0))
        return line

    rows = layout(0, 0) + 1
    width = CELL_WIDTH * (max(box.depth for box in boxes) + 1) + 20
    parts = [text(10, 22, f"… {before[-60:]}", "#57606a", 13)]
    for place, box in enumerate(boxes):
        x, y = 10 + CELL_WIDTH * box.depth, 44 + CELL_HEIGHT * lines[place]
        if box.parent >= 0:
            from_x, from_y = x - CELL_WIDTH + BOX, 56 + CELL_HEIGHT * lines[box.parent]
            dash = ' stroke-dasharray="4 3"' if box.kind == "pruned" else ""
            parts.append(f'<path d="M{from_x},{from_y} L{x},{y + 12}" stroke="#8c959f" fill="none"{dash}/>')
        parts.append(f'<rect x="{x}" y="{y}" width="{BOX}" height="24" rx="4" fill="{COLORS[box.kind]}"/>')
        parts.append(text(x + 6, y + 11, box.text[:14], "#1f2328", 12))
        parts.append(text(x + 6, y + 21, box.source, "#57606a", 8))
    foot = 44 + CELL_HEIGHT * rows
    for number, kind in enumerate(("accepted", "rejected", "pruned")):
        parts.append(f'<rect x="{10 + 110 * number}" y="{foot}" width="12" height="12" fill="{COLORS[kind]}"/>')
        parts.append(text(28 + 110 * number, foot + 11, kind, "#1f2328", 12))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {foot + 22}" width="{width}" '
        f'font-family="monospace">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def text(x: int, y: int, content: str, color: str, size: int) -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" xml:space="preserve">{escape(content)}</text>'


def main(path: Path) -> None:
    """Write the picture."""
    generator = structgen.Generator(backend="transformers")
    finder = Finder(generator.vocabulary.tokens)
    finder.watch()
    draft = make_speculator("auto", generator.model, generator.tokenizer, generator.vocabulary)
    generator.generate(PROMPT, structgen.json_schema(SCHEMA), draft=draft, max_new_tokens=200)
    if not finder.best:
        raise SystemExit("No tree shows pruning and acceptance; change the prompt.")
    path.write_text(svg(finder.best, finder.before), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

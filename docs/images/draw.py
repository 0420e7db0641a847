"""Draws the pictures of docs/concepts.md and docs/confidence.md: `python docs/images/draw.py`.

The site puts them into its pages (docs/hooks.py), whose colours they then take; alone they follow the system's.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent
STYLE = """<style>
.sg { --ink: var(--md-typeset-color, #24292f); --faint: var(--md-default-fg-color--lighter, #8b949e); }
.sg text { fill: var(--ink); font: 14px system-ui, sans-serif; }
.sg .code { font-family: ui-monospace, monospace; }
.sg .small { font-size: 12px; }
.sg .middle { text-anchor: middle; }
.sg .end { text-anchor: end; }
.sg rect, .sg path, .sg line { fill: none; stroke: var(--faint); stroke-width: 1.5; }
.sg .good { fill: #2e9e5b55; stroke: #2e9e5b; }
.sg .bad { fill: #d5544f33; stroke: #d5544f; stroke-dasharray: 4 3; }
.sg .new { fill: #5b6bd555; stroke: #5b6bd5; }
.sg .way { stroke: #2e9e5b; stroke-width: 3; }
.sg .lost { stroke: #d5544f; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
  .sg { --ink: var(--md-typeset-color, #e6edf3); --faint: var(--md-default-fg-color--lighter, #7d8590); }
}
</style>"""


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words whose base line begins at a point, or has its middle or end there."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" xml:space="preserve">{escape(words)}</text>'


def bar(x: float, y: float, width: float, kind: str, height: float = 18) -> str:
    """A bar from left to right."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" class="{kind}"/>'


def node(x: float, y: float, words: str, kind: str = "") -> str:
    """A token in a box, about a point."""
    width = 24 + 8.5 * len(words)
    box = f'<rect x="{x - width / 2:g}" y="{y - 15:g}" width="{width:g}" height="30" rx="6" class="{kind}"/>'
    return box + text(x, y + 5, words, "code middle")


def edge(x: float, y: float, to_x: float, to_y: float, kind: str = "") -> str:
    """A curve from one box's right side to another's left."""
    half = (x + to_x) / 2
    return f'<path d="M{x:g} {y:g}C{half:g} {y:g} {half:g} {to_y:g} {to_x:g} {to_y:g}" class="{kind}"/>'


def masks() -> list[str]:
    """What a mask does to one step's probabilities."""
    tokens = [("6", 0.42, True), ("}", 0.08, True), ("years", 0.24, False), ('"', 0.16, False), (" old", 0.10, False)]
    allowed = sum(chance for _, chance, good in tokens if good)
    parts = [
        text(20, 26, 'so far  {"age": 3', "code"),
        text(140, 58, "the model says", "small"),
        text(480, 58, "given the mask", "small"),
    ]
    for row, (token, chance, good) in enumerate(tokens):
        y = 70 + 30 * row
        kind = "good" if good else "bad"
        parts += [text(110, y + 14, token, "code end"), bar(140, y, 380 * chance, kind)]
        parts += [text(150 + 380 * chance, y + 14, f"{chance:.0%}", "small")]
        share = chance / allowed if good else 0.0
        parts += [bar(480, y, max(1, 190 * share), kind), text(490 + 190 * share, y + 14, f"{share:.0%}", "small")]
    return parts


def dead_ends() -> list[str]:
    """Which digits a number between 100 and 199 that is a multiple of 50 may begin with."""
    parts = [edge(78, 120, 172, 120, "way")]
    for y, kind in ((45, "way"), (120, "way"), (195, "lost")):
        parts.append(edge(208, 120, 302, y, kind))
    for y in (45, 120):
        parts += [edge(338, y, 432, y, "way"), node(450, y, "0", "good")]
    parts += [node(60, 120, "▸"), node(190, 120, "1", "good"), node(320, 45, "0", "good"), node(320, 120, "5", "good")]
    parts += [text(490, 50, "100", "code"), text(490, 125, "150", "code"), node(320, 195, "1", "bad")]
    parts += [
        text(360, 192, "still a number below 200, but no digit after it"),
        text(360, 210, "makes a multiple of 50: a dead end, never allowed"),
    ]
    return parts


def speculation() -> list[str]:
    """A tree of guesses: pruned, read in one call, a path of it taken."""
    parts = [node(75, 110, '{"city": "', "good")]
    levels = [
        (225, 60, "Par", "good", 131, 110, "way"),
        (225, 160, "Lon", "new", 131, 110, ""),
        (345, 30, "is", "good", 251, 60, "way"),
        (345, 90, "ma", "new", 251, 60, ""),
        (345, 160, "don", "new", 251, 160, ""),
        (465, 30, '", "', "good", 365, 30, "way"),
        (465, 90, "42", "bad", 365, 90, "lost"),
        (465, 160, '"}', "new", 370, 160, ""),
    ]
    for x, y, words, kind, from_x, from_y, way in levels:
        left = x - 12 - 4.25 * len(words)
        parts += [edge(from_x, from_y, left, y, way), node(x, y, words, kind)]
    parts += [edge(494, 30, 571, 30, "way"), node(600, 30, "unit", "good")]
    for x, kind, words in (
        (20, "good", "taken, with a token more"),
        (235, "new", "read in the same call, not taken"),
        (470, "bad", "pruned by the constraint"),
    ):
        parts += [bar(x, 205, 22, kind, 14), text(x + 30, 217, words, "small")]
    return parts


def distortion() -> list[str]:
    """Five fair coins, 00000 or whatever begins with 1: what masks draw, and what they should."""
    parts = [text(20, 24, "00000", "code"), text(120, 24, "the 16 texts that begin with 1", "")]
    for x, words, first, other in (
        (0, "masks: 1/2 and 1/32", 1 / 2, 1 / 32),
        (1, "given the constraint: 1/17 each", 1 / 17, 1 / 17),
    ):
        base = 130 + 75 * x
        for column, chance in enumerate([first] + [other] * 16):
            height = 160 * chance if chance < 0.4 else 80
            left = 25 + (0 if column == 0 else 70 + 30 * column)
            kind = "bad" if chance == 1 / 2 else "good" if x else "new"
            parts.append(
                f'<rect x="{left}" y="{base - height:g}" width="20" height="{height:g}" rx="2" class="{kind}"/>'
            )
        parts += [f'<line x1="15" y1="{base}" x2="610" y2="{base}"/>', text(20, base + 20, words, "small")]
    return parts


def confidence() -> list[str]:
    """A record whose fields carry their numbers: what `benchmarks/confidence.py --record` prints."""
    fields = [
        ("profession", '"baker"', 0.09, "0.0006", '"teacher" 0.73, "pilot" 0.14, "nurse" 0.04'),
        ("city", '"Oslo"', 0.73, "0.04", '"Rome" 0.27'),
        ("has_pet", "true", 0.63, "0.8", "false 0.37"),
        ("age_group", '"adult"', 0.94, "0.006", '"child" 0.06'),
    ]
    parts = [text(220, 24, "prob", "small"), text(370, 24, "kept", "small"), text(440, 24, "others", "small")]
    for number, (name, value, prob, kept, others) in enumerate(fields):
        y = 52 + 34 * number
        parts += [text(20, y, name), text(120, y, value, "code"), bar(220, y - 14, 100, "")]
        parts += [bar(220, y - 14, 100 * prob, "good" if prob >= 0.5 else "bad"), text(330, y, f"{prob:.2f}", "small")]
        parts += [text(370, y, kept, "small"), text(440, y, others, "small")]
    return parts


PICTURES = {
    "confidence": (
        760,
        175,
        confidence,
        "Four fields of a record with the probability of each value as a bar; the profession is the least sure",
    ),
    "masks": (
        700,
        225,
        masks,
        "Of five tokens that the model finds likely, two are allowed; their probabilities are scaled to one",
    ),
    "dead_ends": (
        760,
        230,
        dead_ends,
        "After 1 the digits 0 and 5 lead to 100 and 150; the digit 1 leads nowhere and is not allowed",
    ),
    "speculation": (
        700,
        230,
        speculation,
        "A tree of drafted tokens, one pruned, all others read in one call, one path of them taken",
    ),
    "distortion": (
        640,
        235,
        distortion,
        "With masks one text has half of the probability, which given the constraint would have a seventeenth",
    ),
}


def main() -> None:
    """Write the files."""
    for name, (width, height, draw, words) in PICTURES.items():
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="sg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(words)}">'
        )
        (FOLDER / f"{name}.svg").write_text("\n".join([head, STYLE, *draw(), "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()

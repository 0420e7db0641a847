"""Parts of a line by their names: a regular expression with named groups.

python examples/fields_by_expression.py [MODEL]
"""

from __future__ import annotations

import re
import sys

from structgen import Generator

MEETING = re.compile(
    r"(?P<day>Monday|Tuesday|Wednesday|Thursday|Friday), (?P<hour>(?:0[89]|1[0-7]):[0-5][0-9]): (?P<about>[a-z ]{3,40})"
)


def main(generator: Generator) -> dict[str, str]:
    """Print the parts."""
    prompt = "Note in one line: let us talk about the budget, Tuesday at ten. Form: Weekday, HH:MM: subject"
    result = generator.generate(prompt, MEETING, max_new_tokens=40)
    found = MEETING.fullmatch(result.text)
    assert found is not None  # it was written by this expression
    parts = found.groupdict()
    print(result.text, parts, sep="\n")
    return parts


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))

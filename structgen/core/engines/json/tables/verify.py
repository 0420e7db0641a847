"""A last look at finished tables: nothing is handed out that would make a kernel read astray or come to a dead end.

`structgen.core.kernels.json.records` says of each field what it holds; the checks follow that from the root on. The
check shares no code with what wrote the tables: liveness is computed anew, from the numbers.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING

from structgen.core.engines.json.tables.pool import AutomatonPool
from structgen.core.kernels.checks import calls as c
from structgen.core.kernels.json import layout
from structgen.errors import InternalError

if TYPE_CHECKING:
    from structgen.core.engines.json.tables.arrays import JsonTables

WRONG = {
    c.OUT_OF_RANGE: "a number is out of range",
    c.WRONG_KIND: "a reference leads to something else than it should",
    c.NOT_IN_ORDER: "texts are not in order",
    c.TWO_KINDS: "a place is used as two things",
    c.BAD_KEY_SET: "a set of keys holds what it cannot",
    c.BAD_LIMITS: "limits exclude each other",
    c.BAD_LENGTHS: "lengths of a string exclude each other",
    c.BAD_CLASSES: "classes of keys do not fit their automaton",
    c.BAD_DISTINCT: "items must differ in a grammar that does not compare any",
    c.BAD_EXISTENTIALS: "existentials are not numbered through",
    c.NO_VALUE: "something can be entered that has no value",
}


@lru_cache(64)
def _checks(sorted_texts: int) -> c.TableChecks:
    """The checks of tables whose strings may be one of so many sorted texts. Strings name these by their number."""
    records = {record.name: copy(record) for record in layout.RECORDS}
    texts = records["string of sorted texts"]
    texts.fields = list(texts.fields)
    texts.whole(0, sorted_texts - 1, offset=layout.S_ENTRIES)
    return c.TableChecks(list(records.values()))


def verify_tables(tables: JsonTables, pool: AutomatonPool) -> None:
    """Check the tables of a grammar. Linear, some microseconds a record.

    Raises:
        InternalError: a kernel could read out of range or come to a dead end.
    """
    checked = pool.checked  # states never change their meaning, so these arrays stay right
    if bool(tables.grammar[layout.H_UNIQUE]) != tables.distinct:
        raise InternalError("the head of a grammar does not say whether items are compared")
    try:
        str(tables.texts, "utf-8")  # keys and strings, one after another
    except UnicodeDecodeError:
        raise InternalError("the tables hold a key or string that is not UTF-8") from None
    roots = (0, "header"), (tables.root, "node")
    check = _checks(len(tables.sorted_texts))
    verdict, position, field = check(tables.grammar, tables.words, tables.texts, checked.words, pool.universal, roots)
    if verdict != c.FINE:
        what = WRONG.get(verdict, f"verdict {verdict}")
        raise InternalError(f"the tables of a grammar are wrong at {position}, field {field}: {what}")

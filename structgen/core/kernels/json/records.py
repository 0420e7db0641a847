"""The records of a JSON grammar's array: each field is declared here, and nowhere else. No code is here.

Words are int32. Records refer to each other by name, and are written by `structgen.core.engines.json.tables.arrays`.
Of each field stands here what it may hold (`structgen.core.kernels.records`); what is more than that, the checks know
(`structgen.core.kernels.checks`).
"""

from structgen.core.kernels import records as _c
from structgen.core.kernels.records import KernelRecord

RECORDS: list[KernelRecord] = []
NODE, OBJECT, ARRAY, COUNTED, DFA_STRING, ENUM_STRING = range(6)  # what records are to the checks beyond their fields
MAX_EXISTENTIAL_SETS = 64


def _record(name: str, meaning: int = -1, like: KernelRecord | None = None) -> KernelRecord:
    record = KernelRecord(name, meaning, like)
    RECORDS.append(record)
    return record


def _ref(kind: str, none: int = _c.NOTHING) -> None:
    """A record of one word, the place of another."""
    _record(f"{kind} ref").ref(kind, none)


# --- header: how text may be spelled ------------------------------------------------------------------
COMPACT, SINGLE, ANY, INDENT = range(4)
_header = _record("header")
H_WHITESPACE = _header.whole(COMPACT, INDENT)
H_RUN = _header.whole(-1)  # white space in one place at most; -1: endless
H_INDENT = _header.whole()
H_ESCAPES = _header.whole(0, 1)  # whether strings may be escaped in any way
H_ORDER = _header.whole(0, 1)  # whether keys come as they are declared
H_UNIQUE = _header.whole(0, 1)  # whether items of some array are compared
_header.size = 8
H_SIZE = _header.size

# --- value node: flags, and of each kind the list of alternatives -----------------------------------
NULL_FLAG, TRUE_FLAG, FALSE_FLAG, ENDLESS_FLAG = 1, 2, 4, 8  # the last: more values than could ever be written
VALUES_SHIFT, MAX_VALUES = 4, 1 << 20  # above the flags: how many values there are at least
_node = _record("node", NODE)
NODE_FLAGS = _node.whole()
NODE_STRINGS, _ = _node.list_of("string ref")
NODE_NUMBERS, _ = _node.list_of("number ref")
NODE_OBJECTS, _ = _node.list_of("object ref")
NODE_ARRAYS, _ = _node.list_of("items ref")
NODE_SIZE = _node.size
_ref("node")
_ref("string")
_ref("object")
_ref("items")
_record("number ref").start(_c.NUMBER_START)

# --- string; the grammar's header, at 0, stands for one without bounds --------------------------------
S_DFA, S_ENUM, S_SORTED = range(3)
_string = _record("string")
S_KIND = _string.word()
S_START = _string.word()
S_MIN = _string.word()  # code points
S_MAX = _string.word()  # -1: no bound
S_DISTANCES = _string.word()  # the table of lengths, see below; 0: none
S_ENTRIES = _string.word()  # of sorted texts: their number
S_COUNT = _string.word()
S_SIZE = _string.size
_string.select = S_KIND, {
    S_DFA: "string of a DFA", S_ENUM: "string of an enumeration", S_SORTED: "string of sorted texts"
}  # fmt: skip
_dfa = _record("string of a DFA", DFA_STRING, like=_string)
_dfa.start(_c.STRING_START, offset=S_START)
_dfa.whole(offset=S_MIN)
_dfa.whole(-1, offset=S_MAX)
_enumeration = _record("string of an enumeration", ENUM_STRING, like=_string)
_enumeration.many("word", S_COUNT, offset=S_ENTRIES)
_enumeration.whole(1, offset=S_COUNT)
_record("string of sorted texts", like=_string).whole(offset=S_ENTRIES)

# --- table of lengths (checked as a whole): first pool state, row length, period, slack (-1: none), then rows: least
# accepted length >= k still to come, or -1. Slack: how much more than k that may be, in any state behind a byte.
D_BASE, D_ROW, D_PERIOD, D_SLACK, D_TABLE = range(5)

# --- entry of a sorted table of strings: declared keys, enumerated values ---------------------------
_word = _record("word")
E_OFFSET, E_LENGTH = _word.text()
E_CHILD = _word.word()  # of a key: node, or choices if members are to be found; -1: it may not be there
E_BIT = _word.word()
E_SIZE = _word.size
_record("key", like=_word).ref("node", -1, offset=E_CHILD)
_record("key with choices", like=_word).ref("choices", -1, offset=E_CHILD)

# --- choices of a member: their number, then the node of each and the existentials that it meets ----
_record("choices").followed_by("choice")
_ref("choices")
_choice = _record("choice")
_choice.ref("node")
_choice.whole(0, MAX_EXISTENTIAL_SETS - 1)

# --- object ------------------------------------------------------------------------------------------
R_OBJECT, R_ARRAY, R_COUNTED = range(3)
NO_OTHERS, ONE_CLASS, CLASSES = range(3)
ENDLESS_WORDS = 1 << 30
_object = _record("object")
R_KIND = _object.word()  # of arrays, too
O_ENTRIES = _object.word()
O_COUNT = _object.word()
O_WORDS = _object.whole(1)
O_REQUIRED = _object.bits(O_WORDS)
O_MIN = _object.whole()
O_MAX = _object.whole(-1)
O_OTHERS = _object.word()  # undeclared keys: none, one class, or the classes that an automaton tells apart
O_START = _object.word()  # of that automaton
O_CHILD = _object.word()  # node of the one class, or one word before those of all; choices where there are existentials
O_DEPENDENT, O_DEPENDENTS = _object.list_of("dependent")
O_NARROW = _object.whole(0, 1)
O_EXISTENTIALS = _object.whole(0, MAX_EXISTENTIAL_SETS - 1)  # set of the existentials
O_CLASSES = _object.word()
O_COUNTS = _object.word()  # how many words each class has from each state on, at most ENDLESS_WORDS; 0: not there
_object.select = R_KIND, {R_OBJECT: "any object"}
_any = _record("any object", like=_object)
_any.select = O_EXISTENTIALS, {0: "plain object", _c.OTHERWISE: "existential object"}
UNIVERSAL = 0  # the pool state in which any string starts
for _name, _key, _member in (("plain", "key", "node"), ("existential", "key with choices", "choices")):
    _begun = _record(f"{_name} object", like=_object)
    _begun.many(_key, O_COUNT, offset=O_ENTRIES)
    _begun.select = O_OTHERS, {_kind: f"{_name} object {_kind}" for _kind in (NO_OTHERS, ONE_CLASS, CLASSES)}
    _none, _one, _more = (
        _record(f"{_name} object {_kind}", OBJECT, like=_begun) for _kind in (NO_OTHERS, ONE_CLASS, CLASSES)
    )
    _one.whole(UNIVERSAL, UNIVERSAL, offset=O_START)
    _one.whole(1, 1, offset=O_CLASSES)
    _one.ref(_member, offset=O_CHILD)
    _more.start(_c.CLASSES_START, offset=O_START)
    _more.whole(1, offset=O_CLASSES)
    _more.many(f"{_member} ref", O_CLASSES, 1, offset=O_CHILD)
    for _without in (_none, _one, _more) if _name == "plain" else (_none, _one):
        _without.whole(0, 0, offset=O_COUNTS)
_dependent = _record("dependent")  # a key, by its bit, and the set of those that it requires
_dependent.whole()
_dependent.whole()

# --- array -------------------------------------------------------------------------------------------
DISTINCT, PAIRED = 1, 2  # items must differ; two must be equal, after which the record is that of A_PAIRED
_array = _record("plain array")
_array.word()  # R_KIND
A_PREFIX, A_PREFIXES = _array.list_of("item")
A_ITEMS = _array.ref("node", -1)
A_MIN = _array.whole()
A_MAX = _array.whole(-1)
A_UNIQUE = _array.word()
A_PAIRED = _array.word()
A_SIZE = _array.size
_array.select = A_UNIQUE, {0: "array", DISTINCT: "array", PAIRED: "paired array"}
_record("array", ARRAY, like=_array)
_record("item").ref("node", -1)
_paired = _record("paired array", ARRAY, like=_array)
_paired.whole(0, 0, offset=A_PREFIXES)
_paired.whole(-1, -1, offset=A_MAX)
_paired.ref("any array", offset=A_PAIRED)
_any_array = _record("any array", like=_array)
_any_array.select = R_KIND, {R_ARRAY: "plain array"}

# --- array whose items are counted: a state of an automaton ------------------------------------------
_counted = _record("counted", COUNTED)
_counted.word()  # R_KIND
T_CLOSES = _counted.whole(0, 1)
T_ENDLESS = _counted.whole(0, 1)  # whether it has endlessly many completions
T_COUNT = _counted.word()
T_CHOICES = _counted.many("transition", T_COUNT)
_counted.word()
_counted.whole(0, 1, offset=A_UNIQUE)
_counted.size = A_SIZE
_transition = _record("transition")
_transition.ref("node")
_transition.ref("items")
_items = _record("items", like=_array)
_items.select = R_KIND, {R_ARRAY: "plain array", R_COUNTED: "counted"}

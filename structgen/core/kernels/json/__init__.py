"""The JSON machine as array code: one byte step, the advance over a token, the walk over a trie of tokens.

The layout stands in ``layout``, which `core.engines.json.tables` writes by, and the entry in ``run``; engines call
it through ``machine``. Nothing here checks its arguments; `structgen.core.engines.json.matcher` and ``masks`` there do.

**Configuration** ``(q, a, b, f)``, four int64: lexical state, two registers, innermost open frame (-1: none). A
matcher holds a set of configurations: a value with several alternatives splits at its first byte. Each is sound and
live by itself, so that the set's mask is the union of its members' masks.

==============  ==============================  ===========================  =====================================
q               a                               b                            expects
==============  ==============================  ===========================  =====================================
VALUE           node                            whitespace run               a value
AFTER                                           whitespace run               ``,`` or the closing bracket, or the end
OBJECT_FIRST                                    whitespace run               a key or ``}``
KEY_NEXT                                        whitespace run               a key
COLON           node of the member              whitespace run               ``:``
ARRAY_FIRST                                     whitespace run               a value or ``]``
LITERAL         0 null, 1 true, 2 false         bytes read                   what remains of it
NUMBER                                          pool state                   more of the number, or what may follow
PAD             node | target q << 40           spaces to come               spaces (indentation)
NEWLINE         node | target q << 40           spaces after it              a newline (indentation)
CLOSE                                                                        the closing bracket (indentation)
STRING + s      string record | acc << 32       pool state | length << 32    value with a DFA and length bounds
ENUM + s        string record | acc << 32       lo | hi << 20 | depth << 40  one of the strings lo..hi of a table
SORTED + s      string record | acc << 32       a state of sorted texts      a name, a quote of documents
KEY + s         acc << 32                       lo | hi << 20 | depth << 40  a key, still a prefix of declared ones
OTHER_KEY + s   pool state | acc << 32          hash of the decoded key      an undeclared key
==============  ==============================  ===========================  =====================================

s is the place inside an escape (BODY, ESCAPE, HEX, LOW_...), acc the hexadecimal digits read and, shifted by 16, the
ten bits of a high surrogate. Keys and strings are compared decoded: as the UTF-8 of what the text stands for.

**Frames** are immutable and append-only: ``[forward] record | count << 32, parent, depth, below, others, seen...``.
Offsets from ``SCRATCH`` on lie in the scratch array (a walk's own frames), others in the arena. ``others`` is the root
of a digital search tree ``[forward] left, right, hash, start`` of the undeclared keys seen (a node's child is chosen
by the bit of the hash at its depth; adding copies the path). ``forward`` serves the copy from scratch to arena.
``below`` is a hash of all frames further out, by which stacks are told apart at their tops. Arrays have the first four
fields; where items must be distinct, ``others`` is the tree of the finished items, with the place in the text where
each starts, and the field behind it is the place where the current item starts.

**Counted arrays** (``contains``, some item that must differ) are automata: each state is a record of its own with
choices (node of the next item, state after it), and the machine splits at the comma. **Existentials** of an object
(some member, which the schema does not name, must satisfy a condition) are bits behind the keys seen: a member's key
has choices (node, bits that it meets), and the machine splits at the quote that ends it.

**Distinct items**: the text so far lies in a buffer; a finished item is hashed from its text (`_hash_value`), and
where hashes agree the texts are compared (`_equal_values`). Whether an item that was begun can become a new one is a
question of counting: if it can still become more values (`values_here`, `endless_frame`) than there are items that it
may be equal to (`rivals`: those whose text begins alike), it can, by the pigeonhole principle. Else its values are few,
and they are listed until one is new (`_finds_fresh`); those of an enumeration are looked up (`all_listed`). Of an item
that can be none before it any more when a mask is begun (`unrivalled`) nothing is asked within that mask. Where two
items must be equal instead, the array cannot close before, and goes on as a plain one after.

**Pool** rows are DFA states over bytes, shared by all grammars of a vocabulary: ``pool[state * 256 + byte]`` is the
next state or -1, ``flags[state]`` says accepting, lazy (not filled yet), inside a UTF-8 sequence.
"""

"""The grammar machine as array code: item sets, continuations, the lexer, masks; for any context-free grammar.

`structgen.core.engines.cfg` prepares the static tables and checks arguments; nothing here does.

**Heap.** All that is learned while texts are read lies in one int64 array: a header (``H_...`` in `layout`), then
records, interned by kind and key, so that equal contexts are equal integers; an id is a record's place
(`structgen.core.kernels.interning`).

**Grammar.** A suffix is an interned tail of a rule (``first`` symbol, ``next`` suffix, ``nullable``; 0 is the empty
one). An item ``suffix << 28 | k`` waits for a suffix and then returns to continuation ``k``.

- *Continuation* (CONT): the set of items to resume when a nonterminal returns, with the contents of the continuations
  behind nullable suffixes already in it. So right recursion keeps the same continuation. The continuations of one
  recursive component of the left-corner graph refer to each other and are interned together (GROUP). If a group is
  equal to one that it refers to, that one is used: left recursion and ambiguity then repeat their item sets.
  INCOMING remembers what a set of items comes to.
- *Item set* (ITEMS): items, and what can be scanned from there, ``class << 48 | suffix << 28 | k``, sorted.
  ``goto(items, classes)`` is memoised (GOTO).
- *Lexer state* (LEX): positions in the automata of the terminals that are being read, and the set's terminals while
  an ignored terminal may go on. 256 transitions: -1 none, -2 not known yet.
- *Configurations* (CONFIGS): a sorted set of ``item set << 28 | lexer state``.

A continuation and a set of configurations hold the bytes of a shortest text to the end, once that was asked
(`structgen.core.kernels.cfg.completion_lengths`).

Markers are items of the empty suffix: ``END_ITEM`` (the text may end) and ``OPEN_ITEM`` (below this the context was cut
off, anything may follow). Cutting (`core.kernels.cfg.context_truncation`) keeps no or one level of continuations, so
that masks are found for all item sets that agree so far; tokens that reach below are kept as a trie and walked again
with more of the set.

**Masks** (`core.kernels.cfg.entries`): tokens within a wide lexer state are a row of bits that depends on that
state only (`core.kernels.cfg.lexer_splits`); tokens that leave it lie in a small trie. What remains of the lexer
state walks the vocabulary. They lie in a second heap, which may be emptied between calls (``H_EPOCH`` tells).
"""

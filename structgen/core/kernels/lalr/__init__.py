"""Lark's LALR parser with its contextual lexer as array code: lexing by first match, parsing by table, masks.

`structgen.core.engines.lalr` prepares the static tables and checks arguments; nothing here does.

**Heap.** All that is learned while texts are read lies in one int64 array: a header (``H_...`` in `layout`), then
records, interned by kind and key, so that equal states are equal integers; an id is a record's place
(`structgen.core.kernels.interning`).

**Characters** come in classes that no terminal tells apart. A state between bytes of a character is a configuration and
a node of a UTF-8 tree, ``config | node << 40``.

- *Node* (NODE): an LALR stack: the stack below, and the state on top.
- *Parser* (PARSER): a stack, a stack of indentations (INDENT) and how many brackets are open; the last two only under
  an indenter. PARSER_COMPLETION is the number of the terminal that has shown it to be live, and 1; 0: it may end, or
  Python knows.
- *Lexer state* (LEX): a lexer, and the terminals that may still match, in its order, with the state of each one's
  automaton: ``terminal << 32 | state``. Each automaton is of ordered threads (first match, as ``re.match``): entries of
  its table are ``state << 1 | promoted``. *promoted*: a match that ended one character ago was waiting for a lookahead,
  which has now come true. A state is *final* where a match ends for sure; whatever the expression prefers less is cut.
- *Configuration* (CONFIG): a parser, a lexer state (0: nothing of the next lexeme is read), a fallback, and the column
  of the text within a newline token. The fallback is the configuration that follows if the lexeme ends at the best
  match so far, with what has been read since read again: it advances with each character, and takes over when no
  terminal of the lexer state is left. So a lexer that goes back over any stretch of text is one step a character.
- FEED memoises what a parser is after a terminal.

- *Class* (CLASS) of a stack: what it takes so that some text completes it (`core.kernels.lalr.classes`), by proofs
  that are found once a grammar (`core.kernels.lalr.proofs`). ABOVE memoises that of a stack and a state upon it.
- *Cut* stacks (`core.kernels.lalr.stack_truncation`) keep a few states, and minus the class in place of what lies
  below; what would depend on that is BELOW. Their masks list the subtrees of the vocabulary that are still open.

**Liveness** is known fast where a terminal that can be finished cleanly, whatever follows (Python fills in which:
``LEX_CLEAN``, ``H_CLEAN``), leads the parser on; all else is listed as unknown, for Python to find a witness. Where
that gave up it says NO, and what lies behind counts as dead too. Of cut stacks, only lexer states are asked for.
"""

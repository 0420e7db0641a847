"""A grammar whose texts have, after each trigger, a name that a monitor suggests."""

from __future__ import annotations

from functools import cached_property

from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.engines.triggered.matcher import TriggeredMatcher
from structgen.core.engines.triggered.tokens import IN_NAMES, Triggers, TriggerTokens
from structgen.core.monitors.protocol import TriggerMonitor
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError


class TriggeredGrammar:
    """Texts of another grammar in which names are a monitor's; see `structgen.core.engines.protocols.Grammar`.

    The language: texts of ``base`` in which, after each trigger, the longest run of bytes of names (`IN_NAMES`) is a
    name that the monitor suggests after the text up to there. Of the suggestions those count that ``base`` takes there
    and after which it may stop, or take a byte that is none of names; where none does, or the monitor says nothing,
    whatever ``base`` allows may come.

    Attributes:
        base: the other grammar.
        monitor: what suggests names.

    Raises:
        ConstraintError: triggers that are none.
    """

    completions_are_shortest = False

    def __init__(self, base: Grammar, monitor: TriggerMonitor) -> None:
        self.base, self.monitor = base, monitor
        self.triggers = checked_triggers(monitor)

    @cached_property
    def tokens(self) -> TriggerTokens:
        """The vocabulary, as triggers see it."""
        return TriggerTokens(self.vocabulary.tokens, self.triggers)

    @property
    def vocabulary(self) -> Vocabulary:
        """See `Grammar.vocabulary`."""
        return self.base.vocabulary

    @property
    def memory_bytes(self) -> int:
        """See `Grammar.memory_bytes`."""
        return self.base.memory_bytes

    @property
    def is_outdated(self) -> bool:
        """See `Grammar.is_outdated`."""
        return self.base.is_outdated

    def matcher(self) -> Matcher:
        """See `Grammar.matcher`."""
        return TriggeredMatcher(self)

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`."""
        return self.base.last_bytes()

    def normal_form(self) -> None:
        """See `Grammar.normal_form`: it has none."""


def checked_triggers(monitor: TriggerMonitor) -> Triggers:
    """What a monitor is asked after.

    Raises:
        ConstraintError: nothing, or something that names may go on with.
    """
    texts = monitor.triggers
    if isinstance(texts, str) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise ConstraintError(f"triggers of a monitor are texts, such as ('.',), at least one; not {texts!r:.100}")
    for text in texts:
        if IN_NAMES[text.encode()[-1]]:
            raise ConstraintError(
                f"the trigger {text!r:.60} ends with what names consist of (ASCII letters, digits, underscores, all "
                "characters beyond ASCII), so that nobody could say where a name begins"
            )
    return Triggers(texts)

"""A constraint in which names after triggers are those that a monitor suggests."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from structgen.core.bounded_cache import Same
from structgen.core.constraints.base import Constraint, instruction_of
from structgen.core.constraints.cache import COMPILED, content_key, joined
from structgen.core.constraints.combined import Combinable
from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.text import regex
from structgen.core.engines.captures.capturing import captured_alike
from structgen.core.engines.triggered.grammar import TriggeredGrammar, checked_triggers
from structgen.core.json_schema.prompt_forms import SchemaForm
from structgen.core.monitors.protocol import TriggerMonitor
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError

ANY_TEXT = r"[\s\S]*"


@dataclass(frozen=True)
class MonitoredConstraint(Combinable):
    """Texts of a constraint with names that a monitor suggests. Make it with ``monitored``. Its value is the other's.

    Attributes:
        base: the constraint.
        monitor: what suggests names.
    """

    base: Constraint
    monitor: TriggerMonitor

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The grammar over ``vocabulary``; a few are kept for the process.

        Raises:
            ConstraintError: what compiling the constraint raises.
        """
        return COMPILED.get(joined(self.content_key(), vocabulary), lambda: self._compiled(vocabulary))

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`; a monitor is only itself."""
        return joined("monitored", content_key(self.base), Same(self.monitor))

    def _compiled(self, vocabulary: Vocabulary) -> Any:
        return captured_alike(self.base.compile(vocabulary), lambda grammar: TriggeredGrammar(grammar, self.monitor))

    def parse(self, text: str) -> Any:
        """The value of the constraint."""
        return self.base.parse(text)

    def parse_partial(self, text: str) -> Any:
        """The value of the constraint, as far as it goes."""
        return self.base.parse_partial(text)

    def instruction(self, form: SchemaForm = "schema") -> str | None:
        """That of the constraint."""
        return instruction_of(self.base, form)


def monitored(base: Any, monitor: TriggerMonitor) -> MonitoredConstraint:
    """What a constraint allows, in which after each of the monitor's triggers comes a name that it suggests there.

    A name is a longest run of ASCII letters, digits, underscores and characters beyond ASCII. Of the names that are
    suggested those count that the constraint allows there, and after which it may end or go on with something else.
    Where none is left, or the monitor answers None, the constraint alone says what may come.

    Args:
        base: a constraint, or what ``json_schema`` takes; None: any text.
        monitor: asked with all of the text so far (see ``TriggerMonitor``), once for each text.

    Raises:
        ConstraintError: no monitor, triggers that are none, or a constraint that cannot be used.
    """
    if not isinstance(monitor, TriggerMonitor):
        raise ConstraintError(
            f"a monitor has triggers and a method suggest; {monitor!r:.100} has not (a monitor of a grammar's terminal "
            "is given as terminals=)"
        )
    checked_triggers(monitor)
    checked = as_constraint(base)
    return MonitoredConstraint(regex(ANY_TEXT) if checked is None else checked, monitor)

"""python-jsonschema with exact division: it divides floats, by which 2.05 is no multiple of 0.01."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import jsonschema
from jsonschema.validators import extend


def exact_validator(validator_class: Any) -> Any:
    """The validator class with exact division; numbers may be int, float (as they are written) or Decimal."""
    steps = {"multipleOf", "divisibleBy"} & validator_class.VALIDATORS.keys()
    return extend(validator_class, dict.fromkeys(steps, _multiple))


def _multiple(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    if validator.is_type(instance, "number") and Fraction(str(instance)) % Fraction(str(step)):
        yield jsonschema.ValidationError(f"{instance} is not a multiple of {step}")

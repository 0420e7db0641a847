"""Sampling from a language model given that its text satisfies a constraint: the *global* target P(text)/P(L).

`Target` says which distribution, `PrefixStore` keeps what the model said about prefixes and bounds on the mass after
them, its samplers draw. docs/aligned.md explains why masks alone draw from another distribution, and what to use when.
"""

from structgen.generation.target.methods import METHODS
from structgen.generation.target.results import Budget, Method, Sample, SampleRun
from structgen.generation.target.samplers import Sampler
from structgen.generation.target.store import PrefixStore
from structgen.generation.target.target import Target

__all__ = ["METHODS", "Budget", "Method", "PrefixStore", "Sample", "SampleRun", "Sampler", "Target"]

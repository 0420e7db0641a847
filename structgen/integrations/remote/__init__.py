"""Any OpenAI-compatible server as a writer of constrained outputs: every answer is checked here.

`RemoteGenerator` and `AsyncRemoteGenerator` ask in the best way that a server has, and check, repair or ask again.
"""

from structgen.integrations.remote.client import AsyncRemoteGenerator, RemoteGenerator
from structgen.integrations.remote.results import Attempt, RemoteEvent, RemoteResult

__all__ = ["AsyncRemoteGenerator", "Attempt", "RemoteEvent", "RemoteGenerator", "RemoteResult"]

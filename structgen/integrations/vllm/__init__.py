"""structgen as vLLM's structured outputs backend: `plugin.register` is the entry point, `backend` has the classes."""

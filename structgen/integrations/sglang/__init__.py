"""structgen as SGLang's grammar backend: `plugin.register` is the entry point, `backend` has the classes."""

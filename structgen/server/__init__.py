"""An OpenAI-compatible server, and the model thread that serves it. Importing this package loads no web framework."""

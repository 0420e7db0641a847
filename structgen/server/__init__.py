"""An OpenAI-compatible server, and the model thread behind it. Importing this package loads no web framework."""

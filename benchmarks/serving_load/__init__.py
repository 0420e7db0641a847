"""What ``benchmarks/serving.py`` measures: a module a subject, each measurement registered by its name."""

"""Benchmarks of constraint engines: JSONSchemaBench with a real model, coverage without one, reasoning tasks."""

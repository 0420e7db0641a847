"""structgen: language models that write exactly what a constraint allows."""

"""structgen inside other libraries, a module each."""

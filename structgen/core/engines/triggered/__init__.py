"""A grammar in which names after triggers are those that a monitor suggests."""

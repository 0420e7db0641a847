"""What is asked, while a text is written, which names may come next."""

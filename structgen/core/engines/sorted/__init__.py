"""The engine of sorted texts: one of many names, a quote of documents. Its states are numbers that nothing keeps."""

"""Language models in GGUF files, read by llama.cpp: no torch, no transformers."""

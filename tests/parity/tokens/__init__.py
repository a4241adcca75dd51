"""The routes for tokens beside vLLM's Python frontend: what was recorded of it, on the same engine."""

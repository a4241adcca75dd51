"""Chat templates in Jinja, as models come with them."""

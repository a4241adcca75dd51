"""Roles that the services need filled, each with the promise its contract suite tests."""

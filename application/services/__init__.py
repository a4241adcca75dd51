"""One service per thing a client can ask for."""

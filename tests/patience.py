"""How long tests wait for what must come."""

import os

PATIENCE_S = float(os.environ.get("NORTHBOUND_TEST_PATIENCE_S", 60.0))
"""No measurement, but an end to waiting for what does not come: far more than the busiest machine takes."""

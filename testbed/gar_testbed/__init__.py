"""The parts of testbed/cluster."""

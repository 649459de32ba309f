"""Simulation of the gateware from Python."""

"""How long a phase takes on a cluster: rooflines, collectives, memory and mappings."""

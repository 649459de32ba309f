"""What a chip is, what a workload asks of it, and the time, joules and dollars it takes."""

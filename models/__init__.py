"""What a chip is, what a workload asks of it, and how long, how many joules and dollars it takes."""

"""The search: budget, space, objectives, studies, reports and the command line."""

"""One module per state type, or per few that belong together."""

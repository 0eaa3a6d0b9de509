"""Where agents, installs and builds run: bubblewrap, limits, and a proxy as their only way out."""

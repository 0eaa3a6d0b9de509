"""How many workers a day of mail needs, how long customers wait, what it costs: the real pool in virtual time."""

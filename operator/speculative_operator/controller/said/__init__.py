"""What a pass tells the user: status, conditions, Events."""

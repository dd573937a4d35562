"""What stands in the cluster, as far as a pass needs it."""

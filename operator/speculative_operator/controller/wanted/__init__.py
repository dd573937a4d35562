"""What is to stand in the cluster, from the spec and from what is seen."""

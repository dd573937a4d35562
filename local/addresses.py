"""The cluster's addresses. All clusters have the same: each has a network namespace of its own."""

from __future__ import annotations

NODE_NAME = "local-node"
NODE_ADDRESS = "10.244.0.1"  # of the bridge; the API server refuses to advertise a loopback address
BRIDGE = "cni0"
POD_RANGE = "10.244.0.0/16"
SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"  # the first of the range goes to the Service `kubernetes`
DNS_SERVICE_ADDRESS = "10.96.0.10"
DNS_READINESS = "127.0.0.1:8181"
DNS_DOMAIN = "cluster.local"
API_PORT = 6443
API_URL = f"https://{NODE_ADDRESS}:{API_PORT}"
ETCD_URL = "http://127.0.0.1:2379"
ETCD_PEER_URL = "http://127.0.0.1:2380"

"""Live speculation: changes and measures the proposal length K of a running vLLM server.

The pure part (`schedule`, `trials`, `ledger`, `prompts`, `live`, `reading`, `pages`, `serving`)
imports no vLLM and takes clock, port and path from its caller; the simulated engine runs the same
code.
`vllm_hooks` is the only module that touches vLLM, `assumptions` lists what it takes for granted.
"""

__version__ = "0.6.0"

PROTOCOL = 1
"""The version of the schedule file and of the page `/state`."""

"""A vLLM-compatible server whose acceptance and step cost come from measured tables.

    table    measured groups: acceptance by position and cost by K      (pure)
    growth   how step time grows with the batch                         (pure)
    draft    one group played: what a step accepts and how long it takes
    engine   continuous batching: requests join, steps yield tokens     (time is an argument)
    world    what a test changes while it runs: collapse, faults, slow steps
    server   the HTTP face, in real time

`local.virtual_time` plays the same engine under an injected clock, without sockets.
"""

"""The product's own tuner and simulated engines under one injected clock, in one process.

clock       an event loop whose time jumps from timer to timer
engine      a simulated engine that is played up to now whenever somebody looks
ports       the tuner's ports over folders and in-process pages
scene       one model, its engines and its tuner, ready to run
rollout     pods of the variant that the tuner wants
autoscaler  replicas as a HorizontalPodAutoscaler wants them
"""

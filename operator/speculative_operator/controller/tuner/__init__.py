"""The tuner as it runs beside the passes: one task for all models, through small ports."""

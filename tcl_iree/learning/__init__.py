"""Cost models, samplers, distillation."""

"""Embedding through a service's batch API: jobs that are submitted, polled and collected later."""

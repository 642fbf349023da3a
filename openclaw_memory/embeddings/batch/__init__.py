"""Batch APIs of embedding services: jobs of many texts, answered minutes or hours later for less money."""

"""Serve a memory over the Model Context Protocol: tools, resources and prompts for any client."""

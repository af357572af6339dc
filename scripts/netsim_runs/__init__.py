"""Shared by the scripts: running netsim, keeping results, reading its tables, and drawing."""

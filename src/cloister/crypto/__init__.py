"""Safe recipes for secrets: keys that wrap keys, sealed payloads and sealed files."""

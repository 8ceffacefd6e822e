"""What the hub does: every capability once, called by the API and by the pages alike."""

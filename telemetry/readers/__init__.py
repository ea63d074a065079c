"""From bytes and text to readings with names, units and times."""

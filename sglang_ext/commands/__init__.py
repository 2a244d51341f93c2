"""The runtime's commands of `grape`; they join through the entry-point group `grape.commands`."""

"""A simulator of one engine's steps, over the policies that the engine runs. All that comes from it is simulated."""

"""What another order of the same sums does to outputs: prompts in one pass, in chunks, and streamed by Grape."""

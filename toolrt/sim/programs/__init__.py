"""What a program under exploration may use: actors, chances, cells and watched objects."""

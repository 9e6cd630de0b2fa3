"""What several commands share: options, inputs, and the program or mix they execute."""

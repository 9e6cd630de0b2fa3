"""One module for each command; `_app` imports it when the command is used."""

"""The playground: Trio programs explored in a browser, where nothing is installed.

Rules.  A Python for browsers (Pyodide) runs toolrt as it is; see `toolrt._without_io` for what stands in for the
operating system.  What is built here is a folder of files: no server runs any code.
"""

"""The playground: Trio programs edited and explored in a browser, where nothing is installed.

``toolrt playground --site DIR`` writes it as a folder of files, which any file server can offer.

Rules.  A Python for browsers (Pyodide) runs toolrt as it is; see `toolrt._without_io` for what stands in for the
operating system.  No server runs any code, and nothing leaves the browser.
"""

from toolrt.playground._site import PlaygroundSite, write_playground

__all__ = ["PlaygroundSite", "write_playground"]

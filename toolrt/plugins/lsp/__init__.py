"""Language servers: what they find in a file, matched to the file's text, and told what tools change.

The ``lsp`` extra brings the messages; the servers are programs of your own choice.
"""

from toolrt.plugins.lsp._checked import Checked
from toolrt.plugins.lsp._recorded import RecordedServer
from toolrt.plugins.lsp._server import LanguageServer
from toolrt.plugins.lsp._servers import LanguageServers, ServerStatus

__all__ = ["Checked", "LanguageServer", "LanguageServers", "RecordedServer", "ServerStatus"]

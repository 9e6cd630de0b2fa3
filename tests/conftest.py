"""What every test stands on."""

from __future__ import annotations

import signal

# A shell that starts a job in the background has it ignore Ctrl-C, and Python then leaves it ignored, here and in
# every child.  The tests that press it want it heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

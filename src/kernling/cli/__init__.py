"""The command line.  It starts here, so that Ctrl-C ends it cleanly even while libraries are being imported."""

import os
import signal
import sys
from typing import Any

INTERRUPTED = 130  # exit code


class Early:
    """Handler of Ctrl-C that remembers it: an import may swallow the exception, and the command must still end."""

    received = False

    def __call__(self, *_: Any) -> None:
        self.received = True
        raise KeyboardInterrupt


def main() -> None:
    """Run the command line."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if ignored, as in the background of a script
            signal.signal(signal.SIGINT, Early())
        # No command uses the threads that OpenBLAS starts, and by default each of them would wait actively for 0.1 s.
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")
        from .commands import app

        app()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)

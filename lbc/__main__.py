"""``python -m lbc``: the command line where the console script is not installed."""

from __future__ import annotations

import sys

from lbc.cli import main

sys.exit(main())

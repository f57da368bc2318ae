"""`python -m tq`: the command line of `tq`."""

import sys

from ._command import main

sys.exit(main())

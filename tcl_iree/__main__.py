"""`python -m tcl_iree`."""

import sys

from tcl_iree.cli import main

sys.exit(main())

"""Names that scripts, libraries and the compiler's worker agree on."""

from __future__ import annotations

# Where IREE starts in a transform library, and the schedule itself.
ENTRY = "__kernel_config"
SEQUENCE = "schedule"
# Set on a function whose schedule ran to its end.
MARKER = "tcl.applied"

GENERIC = "linalg.generic"
FILL = "linalg.fill"
PACK = "linalg.pack"
UNPACK = "linalg.unpack"
# What attention has become when a script meets it.
ONLINE_ATTENTION = "iree_linalg_ext.online_attention"

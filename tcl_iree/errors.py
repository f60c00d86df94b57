"""The errors a user can meet. Every message says what is wrong and what to do next.

Failures of a *candidate* (it does not compile, it is wrong, it is slow) are data, not
exceptions: see `tcl_iree.measure.results`.
"""


class TclIreeError(Exception):
    """Base of all errors with a message meant for the user."""


class TargetError(TclIreeError):
    """The target is unknown, or cannot be compiled for or run on here."""


class OptionError(TclIreeError):
    """An option has a value that means nothing."""


class ModelError(TclIreeError):
    """The model cannot be read, imported or compiled."""


class WorkloadError(TclIreeError):
    """A dispatch cannot be isolated or scheduled; the message is the reason shown to the user."""


class MeasureError(TclIreeError):
    """Measuring itself is impossible (not: a candidate failed)."""


class DatabaseError(TclIreeError):
    """The database is missing, damaged, full or of another schema."""


class ScheduleError(TclIreeError):
    """A schedule or script that does not fit its workload or cannot be read."""


class LibraryError(TclIreeError):
    """A library that cannot be read, merged or applied."""


class JobError(TclIreeError):
    """A file of jobs that cannot be packed, read or run here."""


class FeatureError(TclIreeError):
    """A script cannot be read."""


class LearningError(TclIreeError):
    """There is nothing to learn from, or a model cannot be used here."""

"""What can go wrong, with the exit code that says so; cli.main alone turns these into messages."""

EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_BAD_INPUT = 3
EXIT_FAILURE = 4


class Error(Exception):
    exit_code = EXIT_FAILURE


class UsageError(Error):
    exit_code = EXIT_USAGE


class BadInput(Error):
    exit_code = EXIT_BAD_INPUT


class Interrupted(Error):
    """A signal asked us to stop."""

    def __init__(self, signal_number):
        super().__init__("stopped by signal %d" % signal_number)
        self.exit_code = 128 + signal_number

"""Directories that nobody else can change, reached without following a link.

This runs as root, and other users of the machine may have put something where we are about to write. So every
directory on the way is opened by its descriptor and looked at: it belongs to root or to us, and others can neither
write to it nor, where all may write (/tmp), rename what is ours. After that a path below it means what it says, also
for the programs that are handed one.
"""
import errno
import os
import secrets
import stat

from .errors import Error

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC
_HINT = "GAR_TESTBED_DIR names another place"


def open_directory(path, is_made=False, is_closed=False):
    """A descriptor of our own directory, in which nobody else can write, or, when it is_closed, not even read.

    FileNotFoundError where there is none; is_made makes it, for us alone.
    """
    below = [part for part in path.split("/") if part]
    here = os.open("/", _DIRECTORY)
    try:
        for i, part in enumerate(below):
            _check_way(here, "/" + "/".join(below[:i]))
            child = _open_child(here, part, "/" + "/".join(below[:i + 1]), is_made)
            os.close(here)
            here = child
        _check_own(here, path, 0o077 if is_closed else 0o022)
        return here
    except BaseException:
        os.close(here)
        raise


def _open_child(parent, name, path, is_made):
    try:
        try:
            return os.open(name, _DIRECTORY, dir_fd=parent)
        except FileNotFoundError:
            if not is_made:
                raise
        try:
            os.mkdir(name, mode=0o700, dir_fd=parent)
        except FileExistsError:
            pass  # somebody else was faster, and is looked at like everything else
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        raise
    except OSError as error:
        if _is_link(parent, name):
            raise Error("%s is a link, which is not followed; %s" % (path, _HINT)) from None
        raise Error("cannot use %s: %s; %s" % (path, error.strerror, _HINT)) from None


def _is_link(parent, name):
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _check_way(fd, path):
    found = os.fstat(fd)
    if found.st_uid not in (0, os.geteuid()):
        raise Error("%s belongs to user %d, who could exchange what lies below it; %s" % (path, found.st_uid, _HINT))
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        raise Error("others can write to %s and exchange what lies below it; %s" % (path, _HINT))


def _check_own(fd, path, forbidden):
    found = os.fstat(fd)
    if found.st_uid != os.geteuid():
        raise Error("%s belongs to user %d, and not to us; %s" % (path, found.st_uid, _HINT))
    if found.st_mode & forbidden:
        raise Error("%s has mode %04o; expected %04o, as 'chmod %o' makes it; %s"
                    % (path, stat.S_IMODE(found.st_mode), 0o777 & ~forbidden, 0o777 & ~forbidden, _HINT))


def open_file(directory, name, flags):
    """A descriptor of a file in an open directory."""
    try:
        return os.open(name, flags | _FILE, mode=0o600, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Error("%s is a link, which is not followed" % name) from None
        raise


def read_file(directory, name):
    with open(open_file(directory, name, os.O_RDONLY), encoding="ascii") as file:
        return file.read()


def write_file(directory, name, text, mode=0o600):
    """All of it or nothing, in a new file that takes the place of the old one."""
    part = "%s.%s" % (name, secrets.token_hex(8))
    with open(open_file(directory, part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="ascii") as file:
        try:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.replace(part, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.remove(part, dir_fd=directory)
            raise

"""What code that a model wrote may use: memory, time of the processor, and no network."""

import ctypes
import errno
import logging
import os
import platform
import resource
import socket
import struct

MEMORY = 8 << 30  # bytes more than the process has when the limit is set
CPU_SECONDS = 60  # of each process that runs code

# From the kernel's headers.
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC = 1, 1
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # BPF: load a word, jumps, return
ALLOW, FAIL = 0x7FFF0000, 0x00050000  # FAIL | errno
# Of each machine: its audit number, and the system calls seccomp, socket and io_uring_setup.
MACHINES = {"x86_64": (0xC000003E, 317, 41, 425), "aarch64": (0xC00000B7, 277, 198, 425)}
X32 = 0x40000000  # calls of x86's other 64-bit interface have this bit

_limited = False


def limit_code(timeout):
    """For this process and those that it starts from now on; once. `timeout`: seconds that the metric gives to a program."""
    global _limited
    if _limited:
        return
    _limited = True
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    _set_limit(resource.RLIMIT_AS, used + MEMORY)
    seconds = max(CPU_SECONDS, int(10 * (timeout or 0)))
    os.register_at_fork(after_in_child=lambda: _set_limit(resource.RLIMIT_CPU, seconds))
    problem = cut_network()
    if problem:
        logging.getLogger(__name__).warning("code that the model writes can use the network: %s", problem)


def _set_limit(kind, value):
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def cut_network():
    """From now on this process and those that it starts can open sockets of this machine's processes alone (AF_UNIX), and
    connections that there are end. Returns what kept the kernel from doing so; empty: nothing."""
    machine = platform.machine()
    if machine not in MACHINES:
        return f"there is no filter for {machine}"
    audit, seccomp, sockets, io_uring = MACHINES[machine]
    refused = FAIL | errno.EACCES
    # Each jump has the number of instructions to leave out if it is true, and if it is not.
    program = [
        (LOAD, 0, 0, 4),  # the machine
        (EQUAL, 0, 7, audit),
        (LOAD, 0, 0, 0),  # the call
        (AT_LEAST, 5, 0, X32),
        (EQUAL, 4, 0, io_uring),  # opens sockets by a way of its own
        (EQUAL, 0, 2, sockets),
        (LOAD, 0, 0, 16),  # its first argument
        (EQUAL, 0, 1, socket.AF_UNIX),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, refused),
    ]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filters = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return os.strerror(ctypes.get_errno())
    failed = libc.syscall(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, filters)
    if failed:
        return os.strerror(ctypes.get_errno()) if failed < 0 else "a thread has another filter"
    _end_connections()
    return ""


def _end_connections():
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as one:
                if one.family != socket.AF_UNIX:
                    one.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue  # no socket, or not connected

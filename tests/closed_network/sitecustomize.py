"""Closes the network but for this machine to every Python that has this folder in its `PYTHONPATH`."""

import sys

HERE = {"localhost", "127.0.0.1", "::1", "", None}


def refuse(event, arguments):
    if event in {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getnameinfo"}:
        address = arguments[-1]
        host = address[0] if isinstance(address, tuple) else None  # a socket of this machine has a path
    elif event in {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}:
        host = arguments[0]
    else:
        return
    if (host.decode() if isinstance(host, bytes) else host) not in HERE:
        raise PermissionError(f"nothing may leave this machine, and this asks for {host!r}")


sys.addaudithook(refuse)

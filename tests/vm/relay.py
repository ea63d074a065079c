"""Carries one connection of a virtual machine to a port of this computer: qemu starts it."""

import os
import socket
import sys
import threading


def main() -> None:
    """Copy standard input to the port, and its answers to standard output."""
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as there:

        def ask() -> None:
            while data := os.read(0, 65536):
                there.sendall(data)
            there.shutdown(socket.SHUT_WR)

        threading.Thread(target=ask, daemon=True).start()
        while data := there.recv(65536):
            os.write(1, data)


if __name__ == "__main__":
    main()

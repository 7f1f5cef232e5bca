"""A network of namespaces whose packets arrive late, for processes on one machine.

Each process has a network namespace of its own with a TUN device. One process has the other ends of
all of them: it reads each packet, and writes it to the device of its destination after the delay.
Linux can delay packets by itself (`tc qdisc add dev lo root netem delay 1ms`), but not if its
kernel lacks netem; this needs TUN and the right to make namespaces.
"""

from __future__ import annotations

import collections
import fcntl
import os
import select
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass, field

PREFIX = "10.77.0."
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
# Where the last byte of the destination is in a packet of IPv4.
DESTINATION = 19
LARGEST = 65536


def address(process: int) -> str:
    """The address of a process."""
    return f"{PREFIX}{process + 1}"


def device(process: int) -> str:
    """The name of the device of a process."""
    return f"late{process}"


def is_available() -> bool:
    """Whether this machine lets us make namespaces and TUN devices."""
    command = ["unshare", "-Urnu", "ip", "tuntap", "add", "dev", "late", "mode", "tun"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def namespace(pid: int | str) -> str:
    """The namespace of the network that a process is in."""
    return os.readlink(f"/proc/{pid}/ns/net")


def enter(process: int) -> None:
    """Moves this process to a namespace, waits there for its device, and sets that up.

    Gloo listens where the name of the host leads, so the host is named as its address.
    """
    os.unshare(os.CLONE_NEWNET | os.CLONE_NEWUTS)
    name = device(process)
    while subprocess.run(["ip", "link", "show", name], capture_output=True, check=False).returncode:
        time.sleep(0.01)
    for command in (
        f"ip addr add {address(process)}/24 dev {name}",
        f"ip link set {name} mtu 60000",
        f"ip link set {name} up",
        "ip link set lo up",
    ):
        subprocess.run(command.split(), check=True)
    socket.sethostname(address(process))


@dataclass
class Switch:
    """Carries packets between the devices of processes."""

    seconds: float
    ends: list[int] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def open(self, process: int) -> None:
        """Makes the device of the next process."""
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        request = struct.pack("16sH22x", device(process).encode(), IFF_TUN | IFF_NO_PI)
        fcntl.ioctl(end, TUNSETIFF, request)
        self.ends.append(end)

    def give(self, process: int, pid: int) -> None:
        """Moves the device of a process to its namespace, once it has one."""
        while namespace(pid) == namespace("self"):
            time.sleep(0.01)
        command = ["ip", "link", "set", device(process), "netns", str(pid)]
        subprocess.run(command, check=True)

    def run(self) -> None:
        """Reads packets and writes each after the delay, until told to stop."""
        late: collections.deque[tuple[float, int, bytes]] = collections.deque()
        living = set(self.ends)
        while not self.stop.is_set():
            wait = max(0.0, late[0][0] - time.perf_counter()) if late else 0.1
            ready, _, _ = select.select(living, [], [], wait)
            now = time.perf_counter()
            for end in ready:
                try:
                    packet = os.read(end, LARGEST)
                except OSError:
                    # The process has ended, and its device with it.
                    living.discard(end)
                    continue
                to = packet[DESTINATION] - 1
                # Other packets are of IPv6, by which the kernel looks for routers.
                if packet[0] >> 4 == 4 and to < len(self.ends):
                    late.append((now + self.seconds, to, packet))
            while late and late[0][0] <= time.perf_counter():
                _, to, packet = late.popleft()
                try:
                    os.write(self.ends[to], packet)
                except OSError:
                    # The device is not up yet, or no more; TCP sends once more.
                    continue

    def close(self) -> None:
        """Ends `run`, and removes the devices."""
        self.stop.set()
        for end in self.ends:
            os.close(end)

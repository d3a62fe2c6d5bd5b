"""A peripheral made with Bumble that counts, echoes and has long values, with nothing of bluetoothd or of the kernel's L2CAP.

    bumble_device.py ADAPTER MTU

ADAPTER is a number, such as 1 for hci1. MTU is the largest ATT MTU that the device agrees to, and the largest SDU and PDU of its channel. It prints what happens to
it, a line each.
"""

import asyncio
import struct
import sys
import zlib

from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.l2cap import LeCreditBasedChannelSpec
from bumble_link import CHANNEL, PSM, advertise, open_device, say

SERVICE = "f0e00001-6275-6d62-6c65-646576696365"
SINK = "f0e00002-6275-6d62-6c65-646576696365"
TOTAL = "f0e00003-6275-6d62-6c65-646576696365"
ECHO = "f0e00004-6275-6d62-6c65-646576696365"
LONG = "f0e00005-6275-6d62-6c65-646576696365"


class Sink:
    """Counts what is written without response; once as much has come as was announced, it notifies how much that was, and its CRC-32."""

    def __init__(self):
        self.expected = None
        self.count = 0
        self.check = 0
        self.notify = None

    def expect(self, _, value):
        self.expected = struct.unpack("<I", value)[0]
        self.look()

    def take(self, _, value):
        self.count += len(value)
        self.check = zlib.crc32(value, self.check)
        self.look()

    def look(self):
        if self.expected is None or self.count < self.expected:
            return
        report = struct.pack("<II", self.count, self.check)
        self.expected, self.count, self.check = None, 0, 0
        asyncio.ensure_future(self.notify(report))


def make_service(device):
    kinds = Characteristic.Properties
    may_read, may_write = Characteristic.READABLE, Characteristic.WRITEABLE
    sink = Sink()
    received = Characteristic(SINK, kinds.WRITE_WITHOUT_RESPONSE, may_write, CharacteristicValue(write=sink.take))
    total = Characteristic(
        TOTAL, kinds.WRITE | kinds.NOTIFY, may_read | may_write, CharacteristicValue(write=sink.expect)
    )

    def echo_back(_, value):
        asyncio.ensure_future(device.notify_subscribers(echo, value=bytes(value)))

    echo = Characteristic(ECHO, kinds.WRITE | kinds.NOTIFY, may_read | may_write, CharacteristicValue(write=echo_back))
    long = Characteristic(LONG, kinds.READ, may_read, bytes(number % 251 for number in range(512)))
    psm = Characteristic(PSM, kinds.READ, may_read, struct.pack("<H", CHANNEL))
    sink.notify = lambda report: device.notify_subscribers(total, value=report)
    return Service(SERVICE, [received, total, echo, long, psm])


def serve_channel(channel):
    say(f"channel: SDUs of {channel.peer_mtu}")
    channel.sink = channel.write
    channel.on("close", lambda: say("channel closed"))


async def main(adapter, mtu):
    device = await open_device(adapter, mtu)
    device.add_service(make_service(device))
    device.create_l2cap_server(LeCreditBasedChannelSpec(CHANNEL, mtu=mtu, mps=mtu), serve_channel)
    await advertise(device, SERVICE)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))

"""A sender of the haul protocol (docs/protocol.md) over GATT, made with bleak and nothing of this project.

    bleak_haul.py ADAPTER FILE [LOSE]

Sends FILE to the first receiver that it hears, and prints what the receiver says. LOSE: the octet of the data stream from which on one packet is left
out once, which the receiver has to find.
"""

import asyncio
import hashlib
import os
import struct
import sys

import bleak_link
import haul
from haul import crc32c, to_u48, u16, u48

SEGMENT_POWER = 12
RECEIPT_INTERVAL = 4096


def say(line):
    print(line, flush=True)


class Control:
    """Messages to and from the receiver."""

    def __init__(self, client, limit):
        self.client, self.limit = client, limit
        self.fragments = haul.Fragments()
        self.messages = asyncio.Queue()

    def take(self, _, fragment):
        message = self.fragments.join(fragment)
        if message:
            self.messages.put_nowait(message)

    async def send(self, message):
        for fragment in self.fragments.cut(message, self.limit):
            await self.client.write_gatt_char(haul.CONTROL, fragment, response=True)

    async def next(self, *kinds):
        while True:
            message = await asyncio.wait_for(self.messages.get(), 60)
            if message[0] in (haul.REFUSED, haul.FAILED):
                sys.exit(f"the receiver says: {message[4 : 4 + message[3]].decode()}")
            if message[0] in kinds:
                return message


class Stream:
    """One data stream: the object from an offset on, with a check after each segment."""

    def __init__(self, image, session, epoch, offset):
        self.image, self.epoch, self.offset = image, epoch, offset
        self.start = offset
        head = b"HAUL" + struct.pack("<IH", session & 0xFFFFFFFF, epoch) + to_u48(offset)
        self.sync = head + struct.pack("<I", crc32c(head))
        self.waiting = b""

    def packet(self, limit, edge):
        """As much as fits and may be sent; empty where the right edge is reached."""
        segment = 1 << SEGMENT_POWER
        while len(self.waiting) < limit and self.offset < min(edge, len(self.image)):
            end = min((self.offset // segment + 1) * segment, len(self.image))
            to = min(end, edge)
            self.waiting += self.image[self.offset : to]
            self.offset = to
            if to == end:
                tail = struct.pack("<H", self.epoch) + to_u48(self.start)
                self.waiting += struct.pack("<I", crc32c(self.image[self.start : end] + tail))
                self.start = end
        packet, self.waiting = self.waiting[:limit], self.waiting[limit:]
        return packet


async def send_image(client, name, image, lose):
    data = client.services.get_characteristic(haul.DATA)
    # Values of more than 510 octets are dropped by a receiver at bluetoothd 5.66.
    limit = min(510, data.max_write_without_response_size)
    control = Control(client, limit)
    await client.start_notify(haul.CONTROL, control.take)
    session = int.from_bytes(os.urandom(8), "little")
    await control.send(struct.pack("<BBBBHQ", haul.HELLO, 1, 1, 1, 0, session))
    welcome = await control.next(haul.WELCOME)
    say(f"welcome, version {welcome[2]}")

    digest = hashlib.sha256(image).digest()
    offer = struct.pack("<BBBHHBI", haul.OFFER, 2, 0, 0, 1, SEGMENT_POWER, RECEIPT_INTERVAL)
    offer += to_u48(len(image)) + digest + os.urandom(16) + bytes([len(name)]) + name
    await control.send(offer)
    accept = await control.next(haul.ACCEPT)
    epoch, durable, room = u16(accept[3:]), u48(accept[5:]), u16(accept[11:])
    say(f"accepted from {durable} on")
    stream = Stream(image, session, epoch, durable)
    edge = 256 * (durable // 256 + room)
    await client.write_gatt_char(haul.DATA, stream.sync, response=False)
    sent = 0
    while True:
        packet = stream.packet(limit, edge)
        if packet:
            if lose is not None and sent >= lose:
                lose = None
            else:
                await client.write_gatt_char(haul.DATA, packet, response=False)
            sent += len(packet)
            if control.messages.empty():
                continue
        message = await control.next(haul.RECEIPT, haul.LOST, haul.VERIFIED)
        if message[0] == haul.VERIFIED:
            is_same = u48(message[4:]) == len(image) and message[10:42] == digest
            say("verified" if is_same else "something else was verified")
            break
        if message[0] == haul.RECEIPT:
            received, room = u48(message[5:]), u16(message[17:])
            if u16(message[2:]) == stream.epoch:
                edge = max(edge, 256 * (received // 256 + room))
        else:
            epoch, offset, room = u16(message[2:]), u48(message[4:]), u16(message[10:])
            say(f"lost, for reason {message[12]}")
            stream = Stream(image, session, epoch, offset)
            edge = 256 * (offset // 256 + room)
            await client.write_gatt_char(haul.DATA, stream.sync, response=False)
    await control.send(struct.pack("<BB", haul.CLOSE, 3))
    await control.next(haul.RECEIPT)
    await client.stop_notify(haul.CONTROL)


async def main(adapter, path, lose):
    with open(path, "rb") as file:
        image = file.read()
    device = await bleak_link.find(haul.SERVICE, adapter)
    if device is None:
        sys.exit("no receiver was heard")
    async with bleak_link.connection(device, adapter) as client:
        say("connected")
        await send_image(client, os.path.basename(path).encode(), image, lose)
    say("disconnected")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None))

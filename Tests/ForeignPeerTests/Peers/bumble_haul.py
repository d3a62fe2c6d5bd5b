"""A small receiver of the haul protocol (docs/protocol.md), made with Bumble: over GATT and over an L2CAP channel.

    bumble_haul.py ADAPTER MTU FILE [CUT]

Receives one object into FILE. CUT: once that many octets are durable the device ends the link, one time. It prints what happens to it, a line each.
"""

import asyncio
import hashlib
import struct
import sys

import haul
from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.l2cap import LeCreditBasedChannelSpec
from bumble_link import CHANNEL, PSM, advertise, open_device, say
from haul import crc32c, to_u48, u48

BUFFER = 16384
SEGMENT_POWER = 12
IDLE, STREAMING, WAITING, VERIFYING, COMPLETE = range(5)
CONTROL_RECORD, DATA_RECORD, SYNC_RECORD = 1, 2, 3


class Receiver:
    """The state of the protocol. `tell` takes a control message for the sender; `store` keeps a segment."""

    def __init__(self, path, cut):
        self.path, self.cut = path, cut
        self.state = IDLE
        self.session = self.offer = self.tell = self.end_link = None
        self.epoch = 0
        self.image = b""
        self.start = 0
        self.stream = b""
        self.size, self.digest, self.segment = 0, b"", 1 << SEGMENT_POWER

    @property
    def received(self):
        """The last octet of a segment counts once its check was right."""
        position = self.start + len(self.stream)
        return min(position, self.segment_end - 1) if self.stream else self.start

    @property
    def segment_end(self):
        return min((self.start // self.segment + 1) * self.segment, self.size)

    @property
    def room(self):
        return (len(self.image) // 256 * 256 + BUFFER) // 256 - self.received // 256

    def receipt(self, request=0):
        fields = struct.pack("<BBHB", haul.RECEIPT, request, self.epoch, self.state)
        self.tell(fields + to_u48(self.received) + to_u48(len(self.image)) + struct.pack("<H", self.room))

    def lose(self, request, reason):
        self.epoch += 1
        self.state, self.stream, self.start = WAITING, b"", len(self.image)
        fields = struct.pack("<BBH", haul.LOST, request, self.epoch) + to_u48(self.start)
        self.tell(fields + struct.pack("<HB", self.room, reason))

    def verified(self, request=0):
        self.tell(struct.pack("<BBH", haul.VERIFIED, request, 0) + to_u48(self.size) + self.digest)

    def control(self, message):
        kind, request = message[0], message[1]
        if kind == haul.HELLO:
            self.session = struct.unpack("<Q", message[6:14])[0]
            self.state, self.offer = IDLE, None
            limits = struct.pack("<BBBH16sIB", haul.WELCOME, request, 1, 0, b"a Bumble device.", BUFFER, SEGMENT_POWER)
            self.tell(limits + to_u48(1 << 24) + to_u48(1 << 24))
        elif kind == haul.OFFER:
            self.take_offer(message, request)
        elif kind == haul.QUERY and self.state == COMPLETE:
            self.verified(request)
        elif kind == haul.REWIND and self.state in (STREAMING, WAITING):
            self.lose(request, 3)
        else:
            self.receipt(request)

    def take_offer(self, message, request):
        size, digest = u48(message[12:]), bytes(message[18:50])
        if message != self.offer:
            if (size, digest) != (self.size, self.digest) or message[2] & 1:
                self.image = b""
            self.offer, self.size, self.digest, self.segment = message, size, digest, 1 << message[7]
            self.epoch += 1
            self.state, self.stream, self.start = WAITING, b"", len(self.image)
            say(f"offered, {len(self.image)} octets are here")
        fields = struct.pack("<BBBH", haul.ACCEPT, request, 1 if self.image else 0, self.epoch)
        self.tell(fields + to_u48(len(self.image)) + struct.pack("<H", self.room))
        if len(self.image) == self.size:
            self.finish()

    def packet(self, packet):
        """One packet of the data stream; while one of SYNC is waited for, all others are void."""
        if self.state == WAITING:
            head = b"HAUL" + struct.pack("<IH", self.session & 0xFFFFFFFF, self.epoch) + to_u48(self.start)
            if packet == head + struct.pack("<I", crc32c(head)):
                self.state = STREAMING
            return
        if self.state != STREAMING:
            return
        self.stream += packet
        while self.state == STREAMING and len(self.stream) >= self.segment_end - self.start + 4:
            self.take_segment()

    def take_segment(self):
        length = self.segment_end - self.start
        octets, check = self.stream[:length], self.stream[length : length + 4]
        tail = struct.pack("<H", self.epoch) + to_u48(self.start)
        if check != struct.pack("<I", crc32c(octets + tail)):
            self.lose(0, 1)
            return
        self.image += octets
        self.start, self.stream = len(self.image), self.stream[length + 4 :]
        if self.cut is not None and len(self.image) >= self.cut:
            self.cut, self.state = None, IDLE
            say("ends the link")
            self.end_link()
        elif self.start == self.size:
            self.finish()
        else:
            self.receipt()

    def finish(self):
        self.state = VERIFYING
        with open(self.path, "wb") as file:
            file.write(self.image)
        with open(self.path, "rb") as file:
            is_same = hashlib.sha256(file.read()).digest() == self.digest
        say("verified" if is_same else "different")
        if is_same:
            self.state = COMPLETE
            self.verified()
        else:
            self.image, self.state = b"", IDLE
            text = b"the whole differs"
            self.tell(struct.pack("<BBBB", haul.FAILED, 0, 1, len(text)) + text)


def serve_attributes(device, receiver):
    kinds = Characteristic.Properties
    may_read, may_write = Characteristic.READABLE, Characteristic.WRITEABLE
    parts = {}

    def take_control(connection, value):
        if connection not in parts:
            parts.clear()
            parts[connection] = haul.Fragments()
        fragments = parts[connection]

        def tell(message):
            for fragment in fragments.cut(message, connection.att_mtu - 3):
                asyncio.ensure_future(device.notify_subscriber(connection, control, value=fragment))

        receiver.tell = tell
        receiver.end_link = lambda: asyncio.ensure_future(connection.disconnect())
        message = fragments.join(value)
        if message:
            receiver.control(message)

    control = Characteristic(
        haul.CONTROL, kinds.WRITE | kinds.NOTIFY, may_read | may_write, CharacteristicValue(write=take_control)
    )
    data = Characteristic(
        haul.DATA,
        kinds.WRITE_WITHOUT_RESPONSE,
        may_write,
        CharacteristicValue(write=lambda _, value: receiver.packet(bytes(value))),
    )
    psm = Characteristic(PSM, kinds.READ, may_read, struct.pack("<H", CHANNEL))
    device.add_service(Service(haul.SERVICE, [control, data, psm]))


def serve_channel(channel, receiver):
    say("channel")
    waiting = b""

    def tell(message):
        channel.write(struct.pack("<BH", CONTROL_RECORD, len(message)) + message)

    def take(octets):
        nonlocal waiting
        waiting += octets
        while len(waiting) >= 3:
            kind, length = struct.unpack("<BH", waiting[:3])
            if len(waiting) < 3 + length:
                break
            body, waiting = waiting[3 : 3 + length], waiting[3 + length :]
            if kind == CONTROL_RECORD:
                receiver.control(body)
            else:
                receiver.packet(body)

    receiver.tell = tell
    receiver.end_link = lambda: asyncio.ensure_future(channel.connection.disconnect())
    channel.sink = take


async def main(adapter, mtu, path, cut):
    device = await open_device(adapter, mtu)
    receiver = Receiver(path, cut)
    serve_attributes(device, receiver)
    spec = LeCreditBasedChannelSpec(CHANNEL, mtu=1024, mps=247)
    device.create_l2cap_server(spec, lambda channel: serve_channel(channel, receiver))
    await advertise(device, haul.SERVICE)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else None))

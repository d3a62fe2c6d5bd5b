"""What both sides of the haul protocol need (docs/protocol.md), written from that page."""

SERVICE = "b1e00001-6861-756c-a5d2-3f7c41906e8b"
CONTROL = "b1e00002-6861-756c-a5d2-3f7c41906e8b"
DATA = "b1e00003-6861-756c-a5d2-3f7c41906e8b"

HELLO, OFFER, QUERY, REWIND, CANCEL, CLOSE = range(0x01, 0x07)
WELCOME, ACCEPT, RECEIPT, LOST, VERIFIED, REFUSED, FAILED, BUSY = range(0x81, 0x89)


def make_table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


TABLE = make_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for octet in data:
        crc = crc >> 8 ^ TABLE[(crc ^ octet) & 0xFF]
    return crc ^ 0xFFFFFFFF


def u16(data):
    return int.from_bytes(data[:2], "little")


def u48(data):
    return int.from_bytes(data[:6], "little")


def to_u48(number):
    return number.to_bytes(6, "little")


class Fragments:
    """Control messages in fragments, both ways."""

    def __init__(self):
        self.sent = 0
        self.partial = None
        self.expected = None

    def cut(self, message, limit):
        """The fragments of a message, none longer than the limit."""
        parts = [message[start : start + limit - 1] for start in range(0, len(message), limit - 1)]
        for index, part in enumerate(parts):
            header = (0x80 if index == 0 else 0) | (0x40 if index == len(parts) - 1 else 0) | self.sent & 0x3F
            self.sent += 1
            yield bytes([header]) + part

    def join(self, fragment):
        """The message that a fragment completes, if it does."""
        header = fragment[0]
        if header & 0x80:
            self.partial = b""
        elif self.partial is None or header & 0x3F != self.expected:
            self.partial = None
            return None
        self.partial += bytes(fragment[1:])
        self.expected = header + 1 & 0x3F
        if not header & 0x40:
            return None
        message, self.partial = self.partial, None
        return message

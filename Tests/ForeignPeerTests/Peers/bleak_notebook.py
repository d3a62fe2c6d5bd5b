"""A central made with bleak: reads, writes, subscribes to and uploads to samples/answering-peripheral, and prints what comes of it.

    bleak_notebook.py ADAPTER
"""

import asyncio
import sys

import bleak_link
from bleak.exc import BleakError

SERVICE = "5ae0a000-6e6f-7465-626f-6f6b00000000"
NOTE = "5ae0a001-6e6f-7465-626f-6f6b00000000"
LENGTH = "5ae0a002-6e6f-7465-626f-6f6b00000000"
UPLOAD = "5ae0a003-6e6f-7465-626f-6f6b00000000"


def say(line):
    print(line, flush=True)


def shown(value):
    text = value.decode()
    return text if len(text) < 20 else f"{text[:10]}... ({len(text)} octets)"


async def use(client):
    for characteristic in sorted(client.services.get_service(SERVICE).characteristics, key=lambda c: c.uuid):
        say(f"{characteristic.uuid[4:8]}: {', '.join(sorted(characteristic.properties))}")
    lengths = asyncio.Queue()
    await client.start_notify(LENGTH, lambda _, value: lengths.put_nowait(value))

    async def write(text):
        await client.write_gatt_char(NOTE, text, response=True)
        say(f"told: {int.from_bytes(await lengths.get(), 'little')} octets")
        say(f"read: {shown(await client.read_gatt_char(NOTE))}")

    say(f"read: {shown(await client.read_gatt_char(NOTE))}")
    await write(b"buy a battery")
    await write(b"x" * 300)
    try:
        await client.write_gatt_char(NOTE, b"y" * 401, response=True)
        say("a note that is too long was taken")
    except BleakError:
        say("refused")

    octets = bytes(number * 7 % 256 for number in range(20_000))
    for start in range(0, len(octets), 100):
        await client.write_gatt_char(UPLOAD, octets[start : start + 100], response=False)
    summary = await client.read_gatt_char(UPLOAD)
    count, total = int.from_bytes(summary[:4], "little"), int.from_bytes(summary[4:], "little")
    say(f"uploaded: {count} octets, {'all of them' if total == sum(octets) else 'other ones'}")
    await client.stop_notify(LENGTH)


async def main(adapter):
    device = await bleak_link.find(SERVICE, adapter)
    if device is None:
        sys.exit("no notebook was heard")
    say("found")
    async with bleak_link.connection(device, adapter) as client:
        say("connected")
        await use(client)
    say("disconnected")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

"""Writes without response to a receiver of the haul protocol that is not in a session, and drops them: by bleak, one after the other, and by commands.c.

    bleak_writes.py OCTETS COMMANDS

COMMANDS is the program that was made of commands.c. Prints "connected", and then one JSON object: octets per second of each, from the first write to the answer of a
read that comes after the last, and the processor time of bleak's in seconds, without its start.
"""

import asyncio
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Tests/ForeignPeerTests/Peers"))
import bleak_link
import haul

ADAPTER = "hci0"
# The characteristic in which Core Bluetooth publishes a PSM: it can be read.
PSM = "abdd3056-28fa-441d-a470-55a75a52553a"
# What bluetoothd 5.66 takes as a server; of a device that it had before, bleak does not know the length of packets.
LIMIT = 510


async def write(client, octets):
    value = bytes(number * 31 % 256 for number in range(LIMIT))
    began, processor = time.monotonic(), time.process_time()
    for start in range(0, octets, LIMIT):
        await client.write_gatt_char(haul.DATA, value[: octets - start], response=False)
    await client.read_gatt_char(PSM)
    return octets / (time.monotonic() - began), time.process_time() - processor


async def command(program, client, octets):
    paths = [client.services.get_characteristic(name).path for name in (haul.DATA, PSM)]
    process = await asyncio.create_subprocess_exec(program, *paths, str(octets), stdout=asyncio.subprocess.PIPE)
    rate, _ = await process.communicate()
    if process.returncode != 0:
        sys.exit(f"{program}: {process.returncode}")
    return float(rate)


async def main(octets, program):
    device = await bleak_link.find(haul.SERVICE, ADAPTER)
    if device is None:
        sys.exit("no receiver was heard")
    async with bleak_link.connection(device, ADAPTER) as client:
        print("connected", flush=True)
        commands = await command(program, client, octets)
        bleak, processor = await write(client, octets)
    print(json.dumps({"descriptor": commands, "bleak": bleak, "bleak's processor": processor}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))

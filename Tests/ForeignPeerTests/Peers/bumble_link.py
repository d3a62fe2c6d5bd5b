"""A peripheral made with Bumble on a controller that the kernel leaves to it: opens it and advertises."""

import asyncio
import socket
import subprocess

from bumble.core import UUID, AdvertisingData
from bumble.device import Device, DeviceConfiguration
from bumble.hci import HCI_COMMAND_DISALLOWED_ERROR, Address, HCI_Error, OwnAddressType
from bumble.host import Host
from bumble.transport import open_transport

# The characteristic in which Core Bluetooth publishes a PSM.
PSM = "abdd3056-28fa-441d-a470-55a75a52553a"
CHANNEL = 0x80
SO_RCVBUFFORCE = 33


def say(line):
    print(line, flush=True)


async def open_controller(adapter):
    """The user channel can be had while the adapter is down, which bluetoothd may be changing at the moment."""
    for attempt in range(100):
        subprocess.run(["hciconfig", f"hci{adapter}", "down"], check=False)
        try:
            transport = await open_transport(f"hci-socket:{adapter}")
            break
        except OSError:
            if attempt == 99:
                raise
            await asyncio.sleep(0.1)
    # What does not fit while Python is slow is lost.
    transport.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    return transport


async def open_device(adapter, mtu):
    """A device that agrees to an ATT MTU of `mtu` at most."""
    transport = await open_controller(adapter)
    address = Address("00:00:00:00:00:00", Address.PUBLIC_DEVICE_ADDRESS)
    config = DeviceConfiguration(name="bumble", address=address)
    device = Device(config=config, host=Host(transport.source, transport.sink))
    device.gatt_server.max_mtu = mtu
    return device


async def advertise(device, service):
    """Advertises for ever, whenever there is no link."""
    links = set()

    def linked(connection):
        links.add(connection.handle)
        say("connected")
        connection.on("connection_att_mtu_update", lambda: say(f"ATT MTU {connection.att_mtu}"))

        def ended(_):
            links.discard(connection.handle)
            say("disconnected")

        connection.on("disconnection", ended)

    device.on("connection", linked)
    await device.power_on()
    fields = [
        (AdvertisingData.FLAGS, b"\x06"),
        (AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS, bytes(UUID(service))),
    ]
    device.advertising_data = bytes(AdvertisingData(fields))
    device.scan_response_data = bytes(AdvertisingData([(AdvertisingData.COMPLETE_LOCAL_NAME, b"bumble")]))
    say("ready")
    while True:
        # The controllers tell a scanner of an advertiser once, when it begins.
        if not links:
            try:
                await device.stop_advertising()
                await device.start_advertising(own_address_type=OwnAddressType.PUBLIC)
            except HCI_Error as error:
                # Somebody has connected at this moment, which has ended it already.
                if error.error_code != HCI_COMMAND_DISALLOWED_ERROR:
                    raise
                if device.legacy_advertising_set:
                    device.legacy_advertising_set.enabled = False
        await asyncio.sleep(1)

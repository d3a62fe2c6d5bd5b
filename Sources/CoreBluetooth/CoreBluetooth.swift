/// Apple's Core Bluetooth API on Linux, on top of a *radio*.
///
/// Code written for Apple's framework compiles and runs unmodified. Which radio carries the bytes is chosen by the environment variable
/// `COREBLUETOOTH_RADIO`, or by ``CBManagerOptionRadioKey``; see ``CBManager``. The module holds no link, no daemon and no adapter of its own:
/// it sits on the `Radio` module's protocols.
///
/// Like Apple's module it re-exports Foundation and Dispatch; `CFAbsoluteTime` and `CFUUID`, which appear in its interface, come from
/// CoreFoundation.
@_exported public import CoreFoundation
@_exported public import Dispatch
@_exported public import Foundation

import Foundation
import PrivateBus
import Testing

@testable import DBus

@Suite("Descriptors", .timeLimit(.minutes(30)))
struct DescriptorTests {
  private struct NoPipe: Error {}

  private func pipe() throws -> (reader: UnixDescriptor, writer: UnixDescriptor) {
    var ends: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw NoPipe() }
    return (UnixDescriptor(owning: ends[0]), UnixDescriptor(owning: ends[1]))
  }

  private func write(_ text: String, to descriptor: UnixDescriptor) -> Int {
    let bytes = Array(text.utf8)
    return unsafe send(descriptor.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  private func read(_ descriptor: UnixDescriptor) -> String {
    var buffer = [UInt8](repeating: 0, count: 100)
    let count = unsafe recv(descriptor.raw, &buffer, buffer.count, 0)
    return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
  }

  private func isOpen(_ raw: Int32) -> Bool { fcntl(raw, F_GETFD) >= 0 }

  @Test("An owner closes once, or gives away once; duplicates live on; nothing is inherited")
  func ownership() throws {
    let (reader, writer) = try pipe()
    let duplicate = try writer.duplicate()
    #expect(duplicate.raw != writer.raw)
    #expect(fcntl(duplicate.raw, F_GETFD) & FD_CLOEXEC != 0)
    let raw = try #require(writer.take())
    #expect(writer.take() == nil)
    #expect(writer.raw == -1)
    #expect(isOpen(raw))
    close(raw)
    #expect(write("x", to: duplicate) == 1)
    #expect(read(reader) == "x")
    #expect(throws: DBusError.self) { try writer.duplicate() }
    #expect(throws: DBusError.self) {
      try DBusMessage.signal(path: "/a", interface: "a.b", member: "S", body: [.descriptor(writer)])
    }
  }

  @Test("The end of the owner is the end of the descriptor")
  func closing() throws {
    let (reader, _) = try pipe()
    // The writer is gone, so the reader is at the end.
    #expect(read(reader) == "")
  }

  @Test(
    "Received descriptors are other numbers for the same file, close-on-exec, and work", PrivateBus.isThere
  )
  func passing() async throws {
    let bus = try await PrivateBus()
    let (caller, peer) = (try await bus.connect(), try await bus.connect())
    let (reader, writer) = try pipe()
    let export = try await peer.export(
      [
        DBusInterface(
          "a.b",
          methods: [
            DBusMethod(
              "Acquire", out: [DBusArgument("fd", .descriptor), DBusArgument("mtu", .uint16)]
            ) { try? $0.reply([.descriptor(writer), .uint16(517)]) }
          ])
      ], at: "/a")
    let reply = try await caller.call(
      .call(destination: peer.uniqueName, path: "/a", interface: "a.b", member: "Acquire"))
    let (descriptor, mtu) = try reply.read(DBusDescriptor.self, UInt16.self)
    #expect(mtu == 517)
    #expect(descriptor.owner.raw != writer.raw)
    #expect(fcntl(descriptor.owner.raw, F_GETFD) & FD_CLOEXEC != 0)
    #expect(write("through", to: descriptor.owner) == 7)
    #expect(read(reader) == "through")
    #expect(write("still mine", to: writer) == 10)
    #expect(read(reader) == "still mine")
    withExtendedLifetime(export) {}
  }

  @Test(
    "Descriptors in arrays and variants; nobody who does not want them keeps them open", PrivateBus.isThere
  )
  func nested() async throws {
    let bus = try await PrivateBus()
    let (sender, receiver) = (try await bus.connect(), try await bus.connect())
    let (reader, writer) = try pipe()
    let bodies = Inbox<[DBusValue]>()
    let subscription = try await receiver.subscribe(to: MatchRule(member: "Wanted")) { bodies.put($0.body) }
    let other = try await receiver.subscribe(to: MatchRule(interface: "a.b")) { _ in }
    let values: [DBusValue] = [
      .array(of: .descriptor, [.descriptor(writer), .descriptor(writer)]), .variant(.descriptor(writer)),
    ]
    for member in ["Unwanted", "Wanted"] {
      try await sender.send(.signal(path: "/a", interface: "a.b", member: member, body: values))
    }
    var body: [DBusValue] = try await bodies.next()
    guard case .array(.descriptor, let elements) = body[0], case .variant(.descriptor(let single)) = body[1],
      case .descriptor(let first)? = elements.first
    else {
      Issue.record("\(body)")
      return
    }
    #expect(elements.count == 2)
    #expect(write("a", to: first) == 1 && write("b", to: single) == 1)
    #expect(read(reader).first == "a")
    body = []
    withExtendedLifetime((subscription, other)) {}
  }

  @Test("More descriptors than a message holds are an error before")
  func tooMany() throws {
    let (_, writer) = try pipe()
    let values = (0..<254).map { _ in DBusValue.descriptor(writer) }
    let error = #expect(throws: DBusError.self) {
      try DBusMessage.signal(
        path: "/a", interface: "a.b", member: "S", body: [.array(of: .descriptor, values)])
    }
    #expect(error?.name == DBusErrorName.limitsExceeded)
  }
}

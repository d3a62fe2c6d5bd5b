import Foundation
import Radio
import Testing

@_spi(Streams) @testable import CoreBluetooth

/// How streams begin, and what they refuse.
@Suite(.timeLimit(.minutes(30))) struct StreamLifeTests {
  @Test func arriveUnopened() async throws {
    let rig = ChannelRig()
    rig.far.feed(Data([1]))
    let (input, output) = (try rig.input, try rig.output)
    #expect(input.streamStatus == .notOpen)
    #expect(output.streamStatus == .notOpen)
    #expect(!input.hasBytesAvailable)
    #expect(!output.hasSpaceAvailable)
    #expect(input.readBytes(1) == nil)
    #expect(output.writeBytes([1]) == -1)
    #expect(rig.channel.psm == 0x25)
    #expect(rig.channel.peer.identifier == rig.far.peer.uuid)
    let thread = await RunLoopThread.start()
    input.delegate = rig.recorder
    input.schedule(in: thread.runLoop, forMode: .default)
    await thread.drain()
    #expect(rig.recorder.lines.all == [])
    input.open()
    await thread.drain()
    #expect(rig.recorder.lines.all == ["in open", "in bytes"])
    #expect(input.readBytes(10) == [1])
    await thread.stop()
  }

  @Test func worksByTheLooseFormsOfPrograms() async throws {
    let rig = ChannelRig()
    let inputStream = rig.channel.inputStream
    let outputStream = rig.channel.outputStream
    inputStream.delegate = rig.recorder
    outputStream.delegate = rig.recorder
    inputStream.open()
    outputStream.open()
    #expect(inputStream.streamStatus == .open)
    #expect(inputStream.streamError == nil)
    rig.channel.outputStream.schedule(in: .main, forMode: .default)
    rig.channel.outputStream?.remove(from: .main, forMode: .default)
    inputStream.schedule(in: .main, forMode: .common)
    inputStream.remove(from: .main, forMode: .common)
    inputStream.close()
    #expect(inputStream.streamStatus == .closed)
    #expect(CBL2CAPChannel().inputStream == nil)
  }

  @Test func refusesWithAReason() throws {
    let rig = ChannelRig()
    let (input, output) = (try rig.input, try rig.output)
    func code(_ stream: Stream) -> CBError.Code? { (stream.streamError as? CBError)?.code }
    #expect(code(input) == nil)
    #expect(input.readBytes(1) == nil)
    #expect(output.writeBytes([1]) == -1)
    for stream in [input, output] as [Stream] {
      #expect(code(stream) == .notConnected)
      #expect(stream.streamError?.localizedDescription == "The stream is not open.")
      #expect(stream.streamStatus == .notOpen)
      stream.open()
      #expect(stream.streamError == nil)
      #expect(stream.streamStatus == .open)
    }
    #expect(output.writeBytes([1]) == 1)
    for stream in [input, output] as [Stream] {
      stream.close()
      #expect(code(stream) == nil)
      stream.open()
      #expect(stream.streamStatus == .closed)
    }
    #expect(input.readBytes(1) == nil)
    #expect(output.writeBytes([1]) == -1)
    #expect(code(input) == .operationCancelled)
    #expect(code(output) == .operationCancelled)
    #expect(rig.far.sent == Data([1]))
  }

  @Test func hasNoProperties() throws {
    let rig = ChannelRig()
    for stream in [try rig.input, try rig.output] as [Stream] {
      for key in [.dataWrittenToMemoryStreamKey, .fileCurrentOffsetKey] as [Stream.PropertyKey] {
        #expect(stream.property(forKey: key) == nil)
        #expect(!stream.setProperty(NSNumber(value: 1), forKey: key))
      }
    }
  }
}

internal import BlueZRadio
internal import BulkTransfer
internal import CoreBluetooth
internal import Foundation
internal import Locking
internal import Radio
internal import VirtualRadio

/// One run of a push with its journal: from open files to the last word, or to how to go on.
struct TransferRun {
  let plan: PushPlan
  let device: TransferManifest.Target
  let options: PushOptions
  let radio: RadioRequest
  var coding = TransferCoding()

  /// - Throws: ``Failure`` with the command that goes on, where there is something to go on with.
  func run(_ invocation: Invocation) async throws {
    let printer = invocation.printer
    let radio = try await invocation.environment.radio(self.radio)
    defer { self.radio.capture?.close() }
    let folder = try invocation.environment.stateDirectory()
    let journals = TransferJournal(directory: folder)
    tellChanges(in: journals, printer)
    let facts = self.radio.journalFacts.merging(coding.facts) { $1 }
    let journal = try PushJournal(
      plan, device: device, in: journals,
      folder: FileManager.default.currentDirectoryPath, facts: facts,
      discardsDamaged: options.restarts)
    if let earlier = journal.earlier, !options.restarts { printer.show(.unfinishedBefore(earlier)) }
    var options = options
    if !options.restarts { options.coding = journal.earlier.flatMap { CodingStanding(facts: $0.link) } }
    let before = options.restarts ? [] : journal.earlier?.objects.map(\.confirmed) ?? []
    let confirmed = PosixMutex(before.reduce(0, Amounts.sum))
    let push: PushOperation
    do throws(TransferError) {
      push = try PushOperation(
        plan.objects(compression: coding.compression, base: coding.base?.image.source),
        transferID: plan.manifest.transferID, to: device.linkTarget(on: radio),
        options: options,
        record: { [own = facts] durable, facts in
          let all = durable + before.dropFirst(durable.count)
          confirmed.withLock { $0 = all.reduce(0, Amounts.sum) }
          journal.note(durable: durable, facts: facts.merging(own) { $1 })
        }, memory: KnownDevices(directory: folder), managerOptions: [CBManagerOptionRadioKey: radio],
        clock: RadioTime(radio.clock))
    } catch {
      end(journal, error, printer)
      throw error
    }
    do throws(TransferError) {
      let view = TransferView(
        plan.manifest, base: coding.base?.path, insists: coding.compression == .always)
      _ = try await push.run(view, on: printer)
    } catch {
      end(journal, error, printer)
      throw failure(error, confirmed: UInt64(confirmed.withLock { $0 }))
    }
    end(journal, nil, printer)
  }

  /// Says which files were others when an unfinished transfer of them to this device began: they begin anew.
  private func tellChanges(in journals: TransferJournal, _ printer: any EventPrinter) {
    let entries = (try? journals.entries()) ?? []
    for case .success(let record) in entries.map(\.record) where record.device == device {
      for object in record.objects {
        let now = plan.manifest.objects.first { $0.path == object.path && $0.range == object.range }
        guard let now, now.sha256 != object.sha256 else { continue }
        printer.show(.changedSince(record.started, object, id: record.shortID))
      }
    }
  }

  /// What the device has verified is so, whatever becomes of the journal.
  private func end(_ journal: PushJournal, _ error: TransferError?, _ printer: any EventPrinter) {
    do throws(TransferError) {
      try journal.end(error)
    } catch {
      printer.show(.warning(error))
    }
  }

  private func failure(_ error: TransferError, confirmed: UInt64) -> Failure {
    let total = Amounts.bytes(Int(clamping: plan.manifest.totalSize))
    let stand = "\(Amounts.bytes(Int(clamping: confirmed))) of \(total) are confirmed"
    let goOn =
      "go on with: \(ResumeCommand.line(plan.manifest.transferID, to: device)) "
      + Printable.shellOption(RadioOptions.radio.declaration.name, radio.words)
    switch error.code {
    case .cancelled:
      return Failure(
        code: error.code.rawValue, message: "interrupted; \(stand)", advice: goOn, exitCode: .interrupted)
    case .disconnected, .timedOut:
      return Failure(
        code: error.code.rawValue, message: "\(error.message); \(stand)", advice: goOn,
        exitCode: ExitCode(for: error.code))
    default: return Failure(error)
    }
  }
}

extension TransferManifest.Target {
  /// Whom the link looks for: by the identifier where there is one.
  var linkTarget: DeviceTarget {
    identifier.flatMap(UUID.init(uuidString:)).map { .identifier($0) } ?? .name(name ?? identifier ?? "")
  }

  /// The text that means it on a command line.
  var word: String {
    if case .identifier = linkTarget { identifier ?? "" } else { name ?? identifier ?? "" }
  }

  /// Whom the link looks for on a radio: on one whose devices have addresses, a text of that form is one.
  func linkTarget(on radio: any Radio) -> DeviceTarget {
    guard radio is BlueZRadio, case .name(let text) = linkTarget else { return linkTarget }
    let identifiers = BlueZRadio.identifiers(ofAddress: text)
    return identifiers.isEmpty ? linkTarget : .oneOf(identifiers, called: text.uppercased())
  }
}

extension ValueSyntax where Value == TransferManifest.Target {
  /// A device, by its identifier where the text is a UUID, else by its name.
  static var device: Self {
    Self("NAME") { text throws(InvalidValue) in
      do throws(TransferError) {
        return UUID(uuidString: text) == nil
          ? try TransferManifest.Target(name: text)
          : try TransferManifest.Target(identifier: text.uppercased())
      } catch {
        throw InvalidValue("is no name of a device: \(error.message)")
      }
    }
  }
}

extension Report {
  static func changedSince(_ date: Date, _ object: TransferRecord.Object, id: String) -> Report {
    Report(
      "changed_since", .note,
      [
        "\(Printable.text(object.path)) is another file than in the unfinished transfer \(id) of \(date.formatted(.iso8601));"
          + " beginning anew"
      ],
      [
        .init("path", .string(object.path)), .init("id", .string(id)),
        .init("started", .string(date.formatted(.iso8601))),
      ])
  }

  static func unfinishedBefore(_ record: TransferRecord) -> Report {
    Report(
      "unfinished_before", .detail,
      [
        "this transfer was begun \(record.started.formatted(.iso8601)); then \(Amounts.bytes(Int(clamping: record.confirmed))) were confirmed"
      ],
      [
        .init("started", .string(record.started.formatted(.iso8601))),
        .init("confirmed", .integer(Int(clamping: record.confirmed))),
      ])
  }
}

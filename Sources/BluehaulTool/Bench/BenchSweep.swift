internal import BulkTransfer
internal import VirtualRadio

/// A parameter that a series of measurements varies.
struct BenchSweep: Hashable, Sendable {
  /// A key of the link, or `size`.
  let key: String
  let values: [String]

  static let sizeKey = "size"
  /// Values of one sweep, at most.
  static let mostValues = 100

  /// What a measurement is made of.
  struct Case: Sendable {
    var link: LinkParameters
    var size: Int
    var varied: [(key: String, value: String)] = []
  }

  /// Every combination of values, those of the last sweep varying fastest.
  ///
  /// - Throws: ``UsageError`` for values that make no link.
  static func cases(_ sweeps: [BenchSweep], link: LinkParameters, size: Int) throws(UsageError) -> [Case] {
    var cases = [Case(link: link, size: size)]
    for sweep in sweeps {
      var next: [Case] = []
      for base in cases {
        for value in sweep.values { next.append(try sweep.apply(value, to: base)) }
      }
      cases = next
    }
    return cases
  }

  private func apply(_ value: String, to base: Case) throws(UsageError) -> Case {
    var changed = base
    changed.varied.append((key, value))
    if key == Self.sizeKey {
      do throws(InvalidValue) {
        changed.size = try BenchCommand.sizeSyntax.read(value)
      } catch {
        throw UsageError(
          "--sweep size: \(Printable.text(value, limit: 40)) \(error.reason)", command: "bluehaul bench")
      }
      return changed
    }
    let kept = "\(base.link)".split(separator: ",").filter { !$0.hasPrefix("\(key)=") }
    do throws(SettingError) {
      changed.link = try LinkParameters(parsing: (kept + ["\(key)=\(value)"]).joined(separator: ","))
    } catch {
      throw UsageError("--sweep \(key): it describes no link: \(error)", command: "bluehaul bench")
    }
    return changed
  }
}

extension ValueSyntax where Value == BenchSweep {
  /// `interval=7.5,15,30`.
  static var sweep: Self {
    Self("KEY=VALUE,...") { text throws(InvalidValue) in
      let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
      let keys = LinkParameters.keys.map(\.name) + [BenchSweep.sizeKey]
      guard parts.count == 2, keys.contains(parts[0]) else {
        throw InvalidValue("is not KEY=VALUE,VALUE with one of \(keys.joined(separator: ", "))")
      }
      let values = parts[1].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      guard !values.contains(""), values.count <= BenchSweep.mostValues, Set(values).count == values.count
      else {
        throw InvalidValue("needs 1 to \(BenchSweep.mostValues) different values behind \(parts[0])=")
      }
      return BenchSweep(key: parts[0], values: values)
    }
  }
}

public import Foundation
internal import Locking
internal import SystemCalls

/// What a user has named for something that the program makes; `docs/files.md` has the rules, and nothing is written for a user in another way.
///
/// A file that is not there is made, one of the same kind is replaced as a whole, and any other is refused. Links are followed, also to what
/// is not there yet. FIFOs and character devices are written into.
public final class OutputFile: Sendable {
  /// A kind of files that the program makes, and knows again by their contents.
  public struct Kind: Sendable {
    let name: String
    let headLength: Int
    let isOne: @Sendable (Data) -> Bool

    /// A kind that is known by its beginning.
    ///
    /// - Parameters:
    ///   - name: how one is called: "manifest".
    ///   - headLength: how many bytes `isOne` gets, or all where the file has fewer.
    public init(_ name: String, headLength: Int = 4096, isOne: @escaping @Sendable (Data) -> Bool) {
      self.name = name
      self.headLength = headLength
      self.isOne = isOne
    }
  }

  enum Place {
    /// A name in a folder, where a file of the kind is, or nothing.
    case file(folder: OpenFile, name: String)
    /// A FIFO or a character device.
    case stream(FileStatus)
  }

  /// One file, whatever path leads to it.
  private enum Identity: Hashable {
    case file(device: UInt64, inode: UInt64)
    case name(device: UInt64, inode: UInt64, name: String)
  }

  /// As it was given.
  public let path: String
  let operations: any FileOperations
  let patience: Duration
  /// What is written into, once it is open.
  let stream = PosixMutex<OpenFile?>(nil)
  private let kind: Kind
  private let place: Place
  private let identities: Set<Identity>

  /// Looks at what is there; nothing is changed, and nothing is waited for.
  ///
  /// - Parameters:
  ///   - path: where it is to go.
  ///   - kind: what is to be written.
  ///   - followsLinks: whether a link means the file that it leads to; else it is refused.
  ///   - patience: how long whoever reads a FIFO may take nothing of what is written.
  ///   - output: descriptors that this process prints to; their files are not written over.
  /// - Throws: `invalidArgument` for what is there and must stay; `storage` where there can be no file.
  public convenience init(
    path: String, kind: Kind, followsLinks: Bool = true, patience: Duration = .seconds(10),
    apartFrom output: [Int32] = [STDOUT_FILENO, STDERR_FILENO]
  ) throws(TransferError) {
    try self.init(
      path: path, kind: kind, followsLinks: followsLinks, patience: patience, apartFrom: output,
      operations: SystemFileOperations())
  }

  init(
    path: String, kind: Kind, followsLinks: Bool = true, patience: Duration = .seconds(10),
    apartFrom output: [Int32] = [], operations: any FileOperations
  ) throws(TransferError) {
    self.path = path
    self.kind = kind
    self.operations = operations
    self.patience = patience
    let found = try? operations.status(of: path, in: nil, followingLinks: followsLinks)
    if let found, [.fifo, .characterDevice].contains(found.kind) {
      // What is written into needs no name, and may have none: /dev/stdout, or the pipe of a shell's >(command).
      place = .stream(found)
      // Two texts in one FIFO are none; a terminal and /dev/null are for everybody.
      identities = found.kind == .fifo ? [.file(device: found.device, inode: found.inode)] : []
      return
    }
    if let found, found.kind == .regular {
      for own in output.compactMap({ try? operations.status(of: $0) })
      where own.device == found.device && own.inode == found.inode {
        throw TransferError(
          .invalidArgument, "\(path.printable) is where this command prints to", advice: "name another file")
      }
    }
    let (folder, name, there) = try Self.find(path, followsLinks, operations)
    place = .file(folder: folder.file, name: name)
    var identities: Set<Identity> = [
      .name(device: folder.status.device, inode: folder.status.inode, name: name)
    ]
    if let there { identities.insert(.file(device: there.device, inode: there.inode)) }
    self.identities = identities
    try check(there, in: folder.file, name)
  }

  /// Whether both are one file, by whatever paths: what is written to one would be lost by the other, or mixed with it.
  public func isSame(as other: OutputFile) -> Bool { !identities.isDisjoint(with: other.identities) }

  /// Opens what is written into, so that what cannot be written is refused before the work is done. A file is not touched.
  ///
  /// - Throws: `storage` for a FIFO that nobody reads.
  public func prepare() throws(TransferError) {
    if case .stream(let status) = place { _ = try openStream(status) }
  }

  /// Writes the whole contents. A file has them durably when this returns, and is untouched when it throws.
  public func write(_ contents: Data) throws(TransferError) {
    switch place {
    case .stream(let status): try writeStream(contents, to: try openStream(status))
    case .file(let folder, let name): try replace(name, in: folder, with: contents)
    }
  }

  private func replace(_ name: String, in folder: OpenFile, with contents: Data) throws(TransferError) {
    let there: FileStatus?
    do throws(SystemError) {
      there = try operations.statusIfPresent(name, in: folder.descriptor)
    } catch {
      throw .failure(error, to: "write", path)
    }
    try check(there, in: folder, name)
    do throws(SystemError) {
      let isWritten = try operations.put(contents, as: name, there?.permissions ?? 0o666, in: folder) {
        (temporary) throws(SystemError) in
        try operations.move(temporary, to: name, in: folder.descriptor) { now in
          // The very file that was looked at.
          now.kind == .regular && now.device == there?.device && now.inode == there?.inode
            && now.size == there?.size && now.modified == there?.modified
        }
      }
      if isWritten { return }
    } catch {
      throw .failure(error, to: "write", path)
    }
    throw TransferError(
      .invalidArgument, "\(path.printable) has become something else meanwhile",
      advice: "name a file that nothing else writes to")
  }

  // MARK: What is there

  /// Follows links to where they end: a folder, a name in it, and what has that name.
  private static func find(
    _ path: String, _ followsLinks: Bool, _ operations: any FileOperations
  ) throws(TransferError) -> (folder: (file: OpenFile, status: FileStatus), name: String, there: FileStatus?)
  {
    do throws(SystemError) {
      var end = path
      // As many as Linux follows (path_resolution(7)).
      for _ in 0...40 {
        let (parent, name) = end.splitLastComponent
        let there = try operations.statusIfPresent(end, in: nil)
        if there?.kind == .symbolicLink, followsLinks {
          let target = try operations.target(ofLink: end)
          end = target.hasPrefix("/") ? target : "\(parent)/\(target)"
          continue
        }
        if there == nil, ["", ".", ".."].contains(name) { throw SystemError("openat", ENOENT) }
        let folder = try OpenFile(parent, flags: O_RDONLY | O_DIRECTORY, operations)
        return ((folder, try operations.status(of: folder.descriptor)), name, there)
      }
      throw SystemError("openat", ELOOP)
    } catch {
      throw error.number == ELOOP
        ? TransferError(
          .invalidArgument, "\(path.printable) leads through symbolic links in a circle",
          advice: "check the links on the path") : .failure(error, to: "write", path)
    }
  }

  /// Refuses what must stay.
  private func check(_ there: FileStatus?, in folder: OpenFile, _ name: String) throws(TransferError) {
    guard let there else { return }
    let what: String
    switch there.kind {
    case .regular:
      if there.size == 0 { return }
      if try isOne(name, in: folder) { return }
      throw TransferError(
        .invalidArgument, "\(path.printable) is there already and is no \(kind.name)",
        advice: "name another file, or move that one away")
    case .directory: what = "a folder"
    case .blockDevice: what = "a block device"
    case .socket: what = "a socket"
    case .symbolicLink: what = "a symbolic link"
    case .fifo: what = "a FIFO by now"
    case .characterDevice: what = "a character device by now"
    case .other: what = "of an unknown kind"
    }
    throw TransferError(.invalidArgument, "\(path.printable) is \(what)", advice: "name a file")
  }

  /// Whether a file was made by this program.
  private func isOne(_ name: String, in folder: OpenFile) throws(TransferError) -> Bool {
    do throws(SystemError) {
      let file = try OpenFile(
        name, in: folder, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, operations)
      guard try operations.status(of: file.descriptor).kind == .regular else { return false }
      return kind.isOne(try operations.read(file.descriptor, at: 0, count: kind.headLength))
    } catch {
      throw .failure(error, to: "look into", path)
    }
  }
}

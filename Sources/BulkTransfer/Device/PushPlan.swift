/// What a push needs, prepared: the manifest, and each object's image file, open.
public struct PushPlan: Sendable {
  /// What is to be sent.
  public let manifest: TransferManifest
  /// The files, in the order of the manifest's objects.
  public let images: [ImageFile]

  /// Opens the files of a manifest that lies in `folder`.
  ///
  /// The contents are compared with the manifest while they are sent, segment by segment, before they leave.
  /// - Throws: `unusableFile` where a file is missing or has another size than the manifest says.
  public init(_ manifest: TransferManifest, folder: String = "") throws(TransferError) {
    var images: [ImageFile] = []
    for object in manifest.objects {
      let image = try object.openImage(in: folder)
      guard image.source.size == object.size else {
        throw TransferError(
          .unusableFile,
          "\(object.resolvedPath(in: folder)) has \(image.source.size) bytes of image, and \(object.size) when it was described",
          advice: "push the file again, or create the manifest again")
      }
      images.append(image)
    }
    self.manifest = manifest
    self.images = images
  }

  /// The objects of a ``PushOperation``.
  ///
  /// - Parameters:
  ///   - compression: whether they travel compressed to a receiver that can decode it.
  ///   - base: for a plan of one object, what the receiver may hold of it already: an older version.
  /// - Throws: `invalidArgument` for segments that a sender does not hold in memory, and for a base of several objects; what reading throws.
  public func objects(
    compression: Compression = .never, base: (any ByteSource)? = nil
  ) throws(TransferError) -> [PushObject] {
    guard base == nil || images.count == 1 else {
      throw TransferError(
        .invalidArgument, "a base is for one object, not for \(images.count)", advice: "push them one by one")
    }
    let encoder = SegmentEncoder()
    let older = try base.map { base throws(TransferError) in
      try BaseImage(of: base, challenge: (0..<BaseImage.challengeCount).map { _ in .random(in: 0...255) })
    }
    var objects: [PushObject] = []
    for (object, image) in zip(manifest.objects, images) {
      let checksums = try SegmentChecksums(
        segmentSize: object.segments.segmentSize, values: object.segments.checksums)
      let compresses: Bool =
        switch compression {
        case .always: true
        case .never: false
        case .auto: try encoder.pays(for: image.source)
        }
      objects.append(
        PushObject(
          OutgoingObject(
            name: object.name, size: object.size, sha256: object.sha256, checksums: checksums,
            coding: compresses || older != nil ? ObjectCoding(compresses: compresses, base: older) : nil),
          from: image.source, base: base, encoder: encoder))
    }
    // What the first segments took is not held until the push begins.
    encoder.release()
    return objects
  }
}

/// Whether objects travel compressed.
public enum Compression: String, Hashable, Sendable, CaseIterable {
  /// Where the first segments of an object shrink.
  case auto
  /// Wherever the receiver can decode it; segments that do not shrink travel as they are.
  case always
  case never
}

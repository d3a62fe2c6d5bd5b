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
  /// - Throws: `invalidArgument` for segments that a sender does not hold in memory.
  public func objects() throws(TransferError) -> [PushObject] {
    var objects: [PushObject] = []
    for (object, image) in zip(manifest.objects, images) {
      let checksums = try SegmentChecksums(
        segmentSize: object.segments.segmentSize, values: object.segments.checksums)
      objects.append(
        PushObject(
          OutgoingObject(name: object.name, size: object.size, sha256: object.sha256, checksums: checksums),
          from: image.source))
    }
    return objects
  }
}

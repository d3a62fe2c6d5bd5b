/// Finds the word that a mistyped one was meant to be.
package enum Spelling {
  /// The closest candidate, if it is close enough to be meant.
  package static func closest(to word: String, among candidates: some Sequence<String>) -> String? {
    let near = candidates.map { (candidate: $0, distance: distance(word.lowercased(), $0.lowercased())) }
      .filter { $0.distance <= max(1, min(3, max(word.count, $0.candidate.count) / 3)) }
    return near.min { ($0.distance, $0.candidate) < ($1.distance, $1.candidate) }?.candidate
  }

  /// Insertions, deletions, substitutions and swaps of neighbours that lead from one word to the other.
  package static func distance(_ from: String, _ to: String) -> Int {
    let a = Array(from.prefix(64))
    let b = Array(to.prefix(64))
    var rows = [Array(0...b.count)]
    for i in 0..<a.count {
      var row = [i + 1]
      for j in 0..<b.count {
        var best = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (a[i] == b[j] ? 0 : 1))
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, rows[i - 1][j - 1] + 1) }
        row.append(best)
      }
      rows.append(row)
    }
    return rows[a.count][b.count]
  }
}

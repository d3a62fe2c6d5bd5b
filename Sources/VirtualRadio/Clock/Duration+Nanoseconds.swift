extension Duration {
  /// Whole nanoseconds, rounded toward zero; what 64 bits cannot hold becomes the nearest that they can.
  var inNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    guard !overflows else { return seconds < 0 ? .min : .max }
    let (sum, carries) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    return carries ? (seconds < 0 ? .min : .max) : sum
  }

  /// The first whole nanosecond that is not before this one: a timer set by it is never early.
  var inNanosecondsRoundedUp: Int64 {
    let whole = inNanoseconds
    return Duration.nanoseconds(whole) < self && whole < .max ? whole + 1 : whole
  }
}

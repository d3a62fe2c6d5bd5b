import Testing

/// Tests that run whole transfers, one after the other: each keeps a simulated world, or processes, busy by itself.
@Suite(.serialized, .timeLimit(.minutes(30))) struct WholeRuns {}

struct Comparison {
  let format: StoreFormat
  var isOrdinary: Bool { format == .plain }
}

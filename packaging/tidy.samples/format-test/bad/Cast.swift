func names(_ layout: any StoreLayout) -> [String] {
  guard let layout = layout as? PlainLayout else { return [] }
  return layout.tables.map(\.name)
}

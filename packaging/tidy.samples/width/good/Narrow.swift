/// A comment within the limit.
struct Narrow {
  let text = "code is wrapped by swift-format, not by this rule; code is wrapped by swift-format, not by this rule; code is wrapped by swift-format, not by this rule; "
}

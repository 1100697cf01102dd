struct Reader {}

private struct Helper {}

struct Result {
  let value: Int
}

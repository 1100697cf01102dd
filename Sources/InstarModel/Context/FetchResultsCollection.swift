/// The results of a fetch in batches. It has the keys of the rows, and creates a batch of models or identifiers when
/// one of them is read.
///
/// If reading a batch fails, the context's next fetch or save throws the error. Use it on the thread of its context.
public struct FetchResultsCollection<Element>: RandomAccessCollection {
  private let batches: Batches

  init(count: Int, batchSize: Int, load: @escaping (Range<Int>) -> [Element]) {
    batches = Batches(count: count, batchSize: batchSize, load: load)
  }

  /// The position of the first result: 0.
  public var startIndex: Int { 0 }
  /// The number of rows that the fetch found.
  public var endIndex: Int { batches.count }
  /// The model or identifier at a position. Reads its batch, unless that is the batch that was read last.
  public subscript(position: Int) -> Element { batches.element(at: position) }

  /// Keeps only the batch that was read last.
  private final class Batches {
    let count: Int
    private let batchSize: Int
    private let load: (Range<Int>) -> [Element]
    private var range = 0..<0
    private var elements: [Element] = []

    init(count: Int, batchSize: Int, load: @escaping (Range<Int>) -> [Element]) {
      self.count = count
      self.batchSize = Swift.max(batchSize, 1)
      self.load = load
    }

    func element(at position: Int) -> Element {
      precondition((0..<count).contains(position), "index out of range")
      if !range.contains(position) {
        let start = position - position % batchSize
        elements = []
        range = start..<Swift.min(start + batchSize, count)
        elements = load(range)
      }
      return elements[position - range.lowerBound]
    }
  }
}

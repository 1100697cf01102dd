// swift-format-ignore-file
import Instar

let container = try makeContainer(SearchSchema.self)
let context = ModelContext(container)
let swift = Keyword(text: "swift")
context.insert(Article(headline: "Of migrations", body: "Old and NEW", views: 5, keywords: [swift]))
context.insert(Article(headline: "Drafting", published: .distantPast, views: 50, isDraft: true))
context.insert(Article(headline: "Añadir", views: 2, rating: 4.5))
try context.save()

func headlines(_ predicate: Predicate<Article>) throws -> [String] {
  try ModelContext(container).fetch(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.headline)])).map(\.headline)
}
check(try headlines(Article.predicate(searchText: "new", since: nil)) == ["Of migrations"])
check(try headlines(Article.predicate(searchText: "", since: Date(timeIntervalSinceNow: -60))).count == 2)
check(try headlines(Article.predicate(searchText: "", since: nil, keyword: swift)) == ["Of migrations"])
check(try headlines(Article.predicate(searchText: "anadir", since: nil)) == ["Añadir"])
check(try headlines(ArticleFilter().predicate) == ["Añadir", "Of migrations"])
check(try headlines(ArticleFilter(showsDrafts: true).predicate).count == 3)
check(try headlines(ArticleFilter(text: "old", keyword: "swift").predicate) == ["Of migrations"])
check(try headlines(ArticleFilter(from: .now.addingTimeInterval(60)).predicate).isEmpty)
check(try headlines(ArticleFilter(minimumRating: 4).predicate) == ["Añadir"])
check(try headlines(ArticleFilter(maximumViews: 4).predicate) == ["Añadir"])
check(try context.fetch(FetchDescriptor<Article>()).filter(ArticleFilter(maximumViews: 4).predicate).map(\.views) == [2])
check(try headlines(ArticleFilter.unrated(body: "Old and NEW")) == ["Of migrations"])
check(try headlines(ArticleFilter.unrated(body: nil)) == ["Drafting"])
let query = ArticleQuery(minimumViews: 1, order: .reverse)
check(try context.fetch(query.descriptor).map(\.headline) == ["Of migrations", "Añadir"])
check(try everything(Keyword.self, in: context).count == 1)
check(try everything(Article.self, in: context, sortedBy: [SortDescriptor(\.views)]).map(\.views) == [2, 5, 50])

/// What a predicate finds by SQL, and among models in memory.
func found(_ predicate: Predicate<Article>) throws -> [String] {
  let found = try headlines(predicate)
  // The models read their keywords through the context.
  let context = ModelContext(container)
  try withExtendedLifetime(context) {
    let all = try context.fetch(FetchDescriptor(sortBy: [SortDescriptor(\Article.headline)]))
    check(try all.filter(predicate).map(\.headline) == found)
  }
  return found
}
check(try found(ArticleSearch().inAnyText).count == 3)
check(try found(ArticleSearch(search: "NEW", limit: 2).inAnyText) == ["Añadir", "Of migrations"])
check(try found(ArticleSearch().namedInput).count == 3)
check(try found(ArticleSearch(search: "x").namedInput) == ["Añadir", "Of migrations"])
check(try found(ArticleSearch().typedInput).count == 3)
check(try found(ArticleSearch(search: "mig", limit: 5).typedInput) == ["Of migrations"])
check(try found(ArticleSearch().capturedOptional).count == 3)
check(try found(ArticleSearch(minimum: 4).capturedOptional) == ["Añadir"])
check(try found(ArticleSearch(search: "Drafting", minimum: 4).capturedOptional).isEmpty)
check(try found(ArticleSearch(search: "i").unwrappedOptional).count == 3)
check(try found(ArticleSearch(search: "i", minimum: 4).unwrappedOptional) == ["Añadir"])
check(try found(ArticleSearch().group).isEmpty)
check(try found(ArticleSearch(search: "x", limit: 3).group) == ["Of migrations"])
check(try found(ArticleSearch().wholeGroup).isEmpty)
check(try found(ArticleSearch(search: "x", limit: 3).wholeGroup) == ["Of migrations"])
for search in [ArticleSearch(limit: 3), ArticleSearch(search: "Añadir")] {
  check(try found(search.choice) == (search.limit > 0 ? ["Of migrations"] : ["Añadir", "Drafting"]))
  check(try found(search.branches) == found(search.choice))
}
check(try found(ArticleSearch().binding).count == 3)
check(try found(ArticleSearch(search: "Drafting").binding) == ["Drafting"])
check(try found(ArticleSearch(search: "x", minimum: 4).binding) == ["Añadir"])
check(try found(ArticleSearch(search: "x", limit: 3).evaluations) == ["Of migrations"])
check(try found(ArticleSearch(search: "x", limit: 100).evaluations).isEmpty)
check(try found(ArticleSearch().evaluations).isEmpty)
check(try found(ArticleSearch().innerClosures).count == 3)
check(try found(ArticleSearch(search: "a", words: ["a"]).innerClosures).count == 3)
check(try found(ArticleSearch(search: "swift", words: ["a"]).innerClosures) == ["Of migrations"])
check(try found(ArticleSearch(search: "x", words: ["swift"]).innerClosures) == ["Of migrations"])
let viewed = try context.fetch(FetchDescriptor<Article>()).filter { try ArticleSearch(search: "swift").twoInputs.evaluate($0, swift) }
check(viewed.count == 2)
check(try viewed.filter { try ArticleSearch(search: "x").threeInputs.evaluate($0, swift, 3) }.map(\.views) == [5])

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
let query = ArticleQuery(minimumViews: 1, order: .reverse)
check(try context.fetch(query.descriptor).map(\.headline) == ["Of migrations", "Añadir"])
check(try everything(Keyword.self, in: context).count == 1)
check(try everything(Article.self, in: context, sortedBy: [SortDescriptor(\.views)]).map(\.views) == [2, 5, 50])

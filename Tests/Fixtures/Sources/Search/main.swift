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

// swift-format-ignore-file
import Foundation
import Instar

enum SearchSchema: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Article.self, Keyword.self] }

  @Model final class Article {
    var headline: String
    var body: String?
    var published: Date
    var views: Int
    var rating: Double?
    var isDraft: Bool
    @Relationship(inverse: \Keyword.articles) var keywords: [Keyword]

    init(
      headline: String, body: String? = nil, published: Date = .now, views: Int = 0, rating: Double? = nil,
      isDraft: Bool = false, keywords: [Keyword] = []
    ) {
      self.headline = headline
      self.body = body
      self.published = published
      self.views = views
      self.rating = rating
      self.isDraft = isDraft
      self.keywords = keywords
    }
  }

  @Model final class Keyword {
    @Attribute(.unique) var text: String
    var articles: [Article] = []
    init(text: String) { self.text = text }
  }
}

enum SearchPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [SearchSchema.self] }
  static var stages: [MigrationStage] { [] }
}

typealias Article = SearchSchema.Article
typealias Keyword = SearchSchema.Keyword

extension Article {
  static func predicate(searchText: String, since: Date?, keyword: Keyword? = nil) -> Predicate<Article> {
    let start = since ?? .distantPast
    let keywordText = keyword?.text ?? ""
    return #Predicate<Article> { article in
      (searchText.isEmpty || article.headline.localizedStandardContains(searchText)
        || article.body?.localizedStandardContains(searchText) == true)
        && article.published >= start
        && (keywordText == "" || article.keywords.contains { $0.text == keywordText })
    }
  }
}

struct ArticleQuery {
  var text = ""
  var minimumViews: Int?
  var order: SortOrder = .forward

  var descriptor: FetchDescriptor<Article> {
    let views = minimumViews ?? 0
    var descriptor = FetchDescriptor<Article>(
      predicate: #Predicate { $0.views >= views && !$0.isDraft && ($0.rating ?? 0) < 5 },
      sortBy: [SortDescriptor(\Article.headline, order: order)])
    descriptor.fetchLimit = 10
    descriptor.relationshipKeyPathsForPrefetching = [\.keywords]
    return descriptor
  }
}

/// The filters of a screen, each of which may be off.
struct ArticleFilter {
  var text = ""
  var from: Date?
  var until: Date?
  var minimumRating: Double?
  var maximumViews: Int?
  var keyword = ""
  var showsDrafts = false

  var predicate: Predicate<Article> {
    let (text, keyword, showsDrafts) = (text, keyword, showsDrafts)
    let (from, until) = (from ?? .distantPast, until ?? .distantFuture)
    let (hasRating, rating) = (minimumRating != nil, minimumRating ?? 0)
    let (hasViews, views) = (maximumViews != nil, maximumViews ?? 0)
    return #Predicate { article in
      (text.isEmpty || article.headline.localizedStandardContains(text)
        || (article.body ?? "").localizedStandardContains(text))
        && article.published >= from && article.published <= until
        && (!hasRating || (article.rating ?? 0) >= rating)
        && (!hasViews || article.views <= views)
        && (keyword.isEmpty || article.keywords.contains { $0.text == keyword && !$0.text.isEmpty })
        && (showsDrafts || !article.isDraft)
        && article.body?.isEmpty != true
        && article.views >= 0
        && article.headline != ""
    }
  }

  static func unrated(body: String?) -> Predicate<Article> {
    let isUnrated = #Predicate<Article> { $0.rating == nil }
    return #Predicate<Article> { isUnrated.evaluate($0) && $0.body == body }
  }
}

/// A search field, with conditions in the ways that people write them.
struct ArticleSearch {
  var search = ""
  var limit = 0
  var minimum: Double?
  var words: [String] = []

  var inAnyText: Predicate<Article> {
    let (search, limit) = (search, limit)
    return #Predicate<Article> {
      search.isEmpty || $0.headline.contains(search) || $0.body?.contains(search) == true || $0.views == limit
    }
  }

  var namedInput: Predicate<Article> {
    let (search, limit) = (search, limit)
    return #Predicate { article in
      search.isEmpty || limit > 0 || article.headline.contains(search) || !article.isDraft
    }
  }

  var typedInput: Predicate<Article> {
    let (search, limit) = (search, limit)
    return #Predicate { (article: Article) -> Bool in
      (search == "" && limit == 0) || (article.headline.contains(search) && article.views >= limit)
    }
  }

  var capturedOptional: Predicate<Article> {
    let (search, minimum) = (search, minimum)
    return #Predicate {
      (minimum == nil || $0.rating ?? 0 >= minimum ?? 0) && (search.isEmpty || $0.headline == search)
    }
  }

  var unwrappedOptional: Predicate<Article> {
    let (search, minimum) = (search, minimum)
    return #Predicate<Article> {
      (minimum == nil || $0.rating ?? 0 >= minimum!) && !search.isEmpty && $0.headline.contains(search)
    }
  }

  var group: Predicate<Article> {
    let (search, limit) = (search, limit)
    return #Predicate<Article> {
      !(search.isEmpty || $0.isDraft) && !(limit > 100 || search == "none") && $0.views >= limit
    }
  }

  var wholeGroup: Predicate<Article> {
    let (search, limit) = (search, limit)
    return #Predicate<Article> { !(search.isEmpty || $0.isDraft || $0.views < limit || $0.headline == "") }
  }

  var choice: Predicate<Article> {
    let (search, limit) = (search, limit)
    return #Predicate<Article> { search.isEmpty ? $0.views > limit && !$0.isDraft : $0.headline == search || $0.isDraft }
  }

  var branches: Predicate<Article> {
    let (search, limit) = (search, limit)
    return #Predicate<Article> {
      if search.isEmpty { $0.views > limit && !$0.isDraft } else { $0.headline == search || $0.isDraft }
    }
  }

  var binding: Predicate<Article> {
    let (search, minimum) = (search, minimum)
    return #Predicate<Article> { article in
      if let minimum {
        if let rating = article.rating { rating >= minimum && !search.isEmpty } else { false }
      } else {
        search.isEmpty || article.headline == search
      }
    }
  }

  var evaluations: Predicate<Article> {
    let (search, limit) = (search, limit)
    let isPublic = #Predicate<Article> { !$0.isDraft }
    let isViewed = #Predicate<Article, Int> { $0.views >= $1 }
    let isUsual = #Predicate<Int> { $0 < 100 }
    return #Predicate { isPublic.evaluate($0) && isViewed.evaluate($0, limit) && isUsual.evaluate(limit) && !search.isEmpty }
  }

  var innerClosures: Predicate<Article> {
    let (search, words) = (search, words)
    return #Predicate<Article> {
      words.isEmpty || words.contains { $0 == search } || $0.keywords.contains { $0.text == search }
        || $0.keywords.contains { keyword in words.contains(keyword.text) }
    }
  }

  var twoInputs: Predicate<Article, Keyword> {
    let search = search
    return #Predicate<Article, Keyword> { !search.isEmpty && $0.views > 0 && !$0.isDraft && $1.text == search }
  }

  var threeInputs: Predicate<Article, Keyword, Int> {
    let search = search
    return #Predicate { article, _, limit in
      !search.isEmpty && article.views > limit && !article.isDraft && limit > 0
    }
  }
}

/// For any model of the app.
func everything<Model: PersistentModel>(
  _ type: Model.Type, in context: ModelContext, sortedBy order: [SortDescriptor<Model>] = []
) throws -> [Model] {
  try context.fetch(FetchDescriptor<Model>(sortBy: order))
}

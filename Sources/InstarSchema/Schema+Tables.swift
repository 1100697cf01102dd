// The mapping of a schema to ordinary tables: what `@Table` and `@Column` say.

extension Schema {
  /// How the schema is laid out: `plain` where its entities name their tables, which all or none of them must.
  public var format: StoreFormat {
    entities.contains { $0.table != nil } ? .plain : .coredata
  }

  /// The table of an entity in a plain store, as `@Table` declares it.
  ///
  /// Columns, triggers, views and indexes that no model names survive every change of schema.
  public struct Table: Sendable, Hashable, Codable {
    /// `nil` stands for the name of the entity in snake case: "NoteTag" is `note_tag`.
    public var name: String?
    /// Whether values must be of the declared types (`STRICT`).
    public var isStrict = false
    /// Whether rows are kept by their primary key instead of a rowid.
    public var isWithoutRowID = false
    /// Conditions on each row, as SQL.
    public var checks: [String] = []
    /// Indexes besides those of `#Index` and `#Unique`.
    public var indexes: [TableIndex] = []

    /// A table with the default name.
    public init(_ options: Option...) { self.init(nil, options) }
    /// A table of that name.
    public init(_ name: String, _ options: Option...) { self.init(name, options) }

    private init(_ name: String?, _ options: [Option]) {
      self.name = name
      for option in options {
        switch option.kind {
        case .strict: isStrict = true
        case .withoutRowID: isWithoutRowID = true
        case .check(let condition): checks.append(condition)
        case .index(let index): indexes.append(index)
        }
      }
    }

    /// What `@Table` is given besides a name.
    public struct Option: Sendable {
      enum Kind: Sendable {
        case strict, withoutRowID
        case check(String)
        case index(TableIndex)
      }

      let kind: Kind

      /// Values must be of the declared types (`STRICT`).
      public static let strict = Option(kind: .strict)
      /// Rows are kept by their primary key, which must be declared, instead of a rowid (`WITHOUT ROWID`).
      public static let withoutRowID = Option(kind: .withoutRowID)
      /// A condition on each row: `.check("length(title) > 0")`.
      public static func check(_ condition: String) -> Option { Option(kind: .check(condition)) }
      /// An index with its terms as SQL, columns or expressions, and the condition of a partial one.
      public static func index(
        _ name: String, on terms: String..., unique: Bool = false, where condition: String? = nil
      ) -> Option {
        Option(
          kind: .index(
            TableIndex(name: name, terms: terms, isUnique: unique, condition: condition)))
      }
    }
  }

  /// An index that `@Table` declares.
  public struct TableIndex: Sendable, Hashable, Codable {
    /// As the table's `CREATE INDEX` names it.
    public var name: String
    /// Columns or expressions, as SQL.
    public var terms: [String]
    /// Whether SQLite refuses rows with equal terms.
    public var isUnique: Bool
    /// Which rows are in it, as SQL; `nil` for all.
    public var condition: String?

    /// An index; without a condition, over all rows.
    public init(name: String, terms: [String], isUnique: Bool = false, condition: String? = nil) {
      self.name = name
      self.terms = terms
      self.isUnique = isUnique
      self.condition = condition
    }
  }

  /// The column, or columns, of a property in a plain store, as `@Column` declares them.
  public struct Column: Sendable, Hashable, Codable {
    /// `nil` stands for the name of the property in snake case, with the name of the key behind it for a to-one
    /// relationship: "parentFolder" is `parent_folder_id`. Several for a relationship to a table whose key is several
    /// columns.
    public var names: [String]?
    /// The declared type; `nil` for the one that fits the attribute.
    public var type: String?
    /// How a date, UUID or JSON value is written; `nil` for the first of each kind.
    public var encoding: Encoding?
    /// Whether the column is the primary key of the table, or a part of it.
    public var isPrimaryKey = false
    /// Whether keys of deleted rows are never given again.
    public var isAutoincrement = false
    /// The collation that text is compared by.
    public var collation: String?
    /// A condition on the value, as SQL.
    public var check: String?
    /// The default, as SQL; `nil` for the property's initial value, where it is constant.
    public var defaultValue: String?
    /// Whether the property's initial value is the same at each call, so that it can be a column's default.
    public var hasConstantDefault = true
    /// The expression of a generated column. The property is then only read.
    public var generated: String?
    /// Whether a generated column takes room in the table.
    public var isStored = false
    /// What the database does to rows that refer to a deleted one; `nil` for what the delete rule of the inverse means.
    public var onDelete: Action?
    /// What it does where the key of the row referred to changes.
    public var onUpdate: Action?
    /// The table of links of a many-to-many relationship.
    public var junction: Junction?

    /// A column with the default name.
    public init(_ options: Option...) { self.init(nil, options) }
    /// A column of that name.
    public init(_ name: String, _ options: Option...) { self.init([name], options) }

    private init(_ names: [String]?, _ options: [Option]) {
      self.names = names
      for option in options { option.apply(&self) }
    }

    /// What `@Column` is given besides a name.
    public struct Option: Sendable {
      let apply: @Sendable (inout Column) -> Void

      /// The column is the primary key, or a part of it.
      ///
      /// Without any, the attribute named `id` is; without that the table gets a column `id INTEGER PRIMARY KEY` that
      /// no property shows. A new model whose integer key is 0 or nil is given the next one.
      public static let primaryKey = Option { $0.isPrimaryKey = true }
      /// An integer primary key whose values are never given twice (`AUTOINCREMENT`).
      public static let autoincrement = Option {
        $0.isPrimaryKey = true
        $0.isAutoincrement = true
      }
      /// The declared type: `.type("VARCHAR(120)")`.
      public static func type(_ name: String) -> Option { Option { $0.type = name } }
      /// How a date, UUID or JSON value is written.
      public static func encoding(_ encoding: Encoding) -> Option {
        Option { $0.encoding = encoding }
      }
      /// The columns of a relationship to a table whose key is several columns, in the order of that key.
      public static func columns(_ names: String...) -> Option { Option { $0.names = names } }
      /// The collation that text is compared by: `.collation("NOCASE")`.
      public static func collation(_ name: String) -> Option { Option { $0.collation = name } }
      /// A condition on the value, as SQL.
      public static func check(_ condition: String) -> Option { Option { $0.check = condition } }
      /// The default, as SQL: `.default("CURRENT_TIMESTAMP")`.
      public static func `default`(_ expression: String) -> Option {
        Option { $0.defaultValue = expression }
      }
      /// The column is computed by SQLite; the property is only read.
      public static func generated(_ expression: String, stored: Bool = false) -> Option {
        Option {
          $0.generated = expression
          $0.isStored = stored
        }
      }
      /// What the database does to rows that refer to a deleted one.
      public static func onDelete(_ action: Action) -> Option { Option { $0.onDelete = action } }
      /// What the database does where the key of the row referred to changes.
      public static func onUpdate(_ action: Action) -> Option { Option { $0.onUpdate = action } }
      /// The table of links of a many-to-many relationship, declared on either side: the column that refers to this
      /// model, and the one that refers to the other.
      public static func junction(_ table: String, own: String, other: String) -> Option {
        Option { $0.junction = Junction(table: table, own: [own], other: [other]) }
      }
    }

    /// How a value is written where SQLite has no type for it. Reading takes every form of the kind.
    @frozen
    public enum Encoding: String, Sendable, Hashable, Codable, CaseIterable {
      /// A date in UTC: `2026-01-31T08:15:00.000Z`. The first of its kind.
      case iso8601
      /// A date in UTC, as SQLite, Django, SQLAlchemy and GRDB write it: `2026-01-31 08:15:00.000`.
      case dateTime
      /// A date as seconds since 1970, an integer where it is whole.
      case unixSeconds
      /// A date as whole milliseconds since 1970.
      case unixMilliseconds
      /// A date as Julian day.
      case julianDay
      /// A UUID in lower case, with hyphens. The first of its kind.
      case uuidText
      /// A UUID in upper case, with hyphens.
      case uuidUppercaseText
      /// A UUID as 32 lower-case digits, as Django writes it.
      case uuidHexadecimal
      /// The 16 bytes of a UUID.
      case uuidBytes
      /// JSON as text. The first of its kind.
      case jsonText
      /// JSON as bytes.
      case jsonBytes
    }

    /// What the database does by itself to rows that refer to one that goes or changes its key.
    @frozen
    public enum Action: String, Sendable, Hashable, Codable {
      case noAction = "NO ACTION"
      case restrict = "RESTRICT"
      case setNull = "SET NULL"
      case setDefault = "SET DEFAULT"
      case cascade = "CASCADE"
    }

    /// A table that holds nothing but links between two others.
    public struct Junction: Sendable, Hashable, Codable {
      /// The name of the table with the links.
      public var table: String
      /// Its columns that refer to the rows of the own entity.
      public var own: [String]
      /// Its columns that refer to the rows of the destination.
      public var other: [String]

      /// A table of links; each list of columns is in the order of the key that it refers to.
      public init(table: String, own: [String], other: [String]) {
        self.table = table
        self.own = own
        self.other = other
      }
    }
  }
}

// MARK: - Names

extension Schema {
  /// The name that a Swift name has by convention: "createdAt" is `created_at`, "userID" is `user_id`.
  package static func snakeCase(_ name: String) -> String {
    let characters = Array(name)
    var text = ""
    for (index, character) in characters.enumerated() {
      if character == "." {
        text += "_"
        continue
      }
      let next = index + 1 < characters.count ? characters[index + 1] : nil
      if character.isUppercase, index > 0, characters[index - 1] != ".",
        !characters[index - 1].isUppercase || next?.isLowercase == true,
        characters[index - 1] != "_"
      {
        text += "_"
      }
      text += character.lowercased()
    }
    return text
  }
}

extension Schema.Entity {
  /// The name of the table; `nil` in a schema of the Core Data format.
  package var tableName: String? { table.map { $0.name ?? Schema.snakeCase(name) } }

  /// The attributes that are the primary key, or a part of it. Without any that says so, the one named `id`.
  package var keyAttributes: [Schema.Attribute] {
    let marked = attributes.filter { $0.column?.isPrimaryKey == true }
    let hasReference = relationships.contains { $0.column?.isPrimaryKey == true }
    if !marked.isEmpty || hasReference { return marked }
    return attributes.filter {
      $0.name == "id" && ($0.type.isInteger || $0.type == .uuid || $0.type == .string)
    }
  }
}

extension Schema.Attribute {
  /// The name of the column in a plain store.
  package var columnName: String { column?.names?.first ?? Schema.snakeCase(name) }

  /// The declared type of the column in a plain store.
  package func columnType(isStrict: Bool) -> String {
    if let type = column?.type { return type }
    if let encoding = column?.encoding ?? .standard(for: type) { return encoding.columnType }
    return type.columnType(isStrict: isStrict)
  }
}

extension Schema.AttributeType {
  package var isInteger: Bool { self == .int16 || self == .int32 || self == .int64 }

  /// The declared type of a column of values that need no encoding.
  package func columnType(isStrict: Bool) -> String {
    switch self {
    case .bool, .int16, .int32, .int64: "INTEGER"
    case .double, .float: "REAL"
    case .decimal: isStrict ? "REAL" : "NUMERIC"
    case .string, .url: "TEXT"
    default: "BLOB"
    }
  }
}

extension Schema.Column.Encoding {
  /// The encoding of a type where none is named; `nil` for types that need none.
  public static func standard(for type: Schema.AttributeType) -> Schema.Column.Encoding? {
    switch type {
    case .date: .iso8601
    case .uuid: .uuidText
    case .codable: .jsonText
    default: nil
    }
  }

  /// Whether values of a type can be written so.
  public func fits(_ type: Schema.AttributeType) -> Bool {
    switch self {
    case .iso8601, .dateTime, .unixSeconds, .unixMilliseconds, .julianDay: type == .date
    case .uuidText, .uuidUppercaseText, .uuidHexadecimal, .uuidBytes: type == .uuid
    case .jsonText, .jsonBytes: type == .codable
    }
  }

  /// The declared type of a column of such values.
  package var columnType: String {
    switch self {
    case .unixSeconds, .unixMilliseconds: "INTEGER"
    case .julianDay: "REAL"
    case .uuidBytes, .jsonBytes: "BLOB"
    case .iso8601, .dateTime, .uuidText, .uuidUppercaseText, .uuidHexadecimal, .jsonText: "TEXT"
    }
  }
}

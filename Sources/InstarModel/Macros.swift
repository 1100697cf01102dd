public import Foundation
public import InstarSchema

/// Makes a class a persistent model: its stored properties become the attributes and
/// relationships of an entity of the schema.
///
/// ```swift
/// @Model final class Note {
///   @Attribute(.unique) var uid: String
///   var title: String = "untitled"
///   var folder: Folder?
///
///   init(uid: String) { self.uid = uid }
/// }
/// ```
///
/// Every stored `var` is persisted, except properties marked ``Transient()``, `lazy` and `static`. The macro ignores
/// computed properties and methods. The class needs its own initializer. Without `@Attribute` and `@Relationship` the
/// type decides: a model, an optional model or an array of models is a relationship, everything else an attribute.
/// Existing rows get the initial value if a version adds the property.
///
/// A model may inherit from another one. Both are entities. Their rows share one table, and a fetch of the superclass
/// finds the rows of its subclasses too. Leave out `final` only for a class with subclasses.
///
/// ```swift
/// @Model class Region { var name: String; … }
/// @Model final class Country: Region { var capital: String?; … }
/// ```
///
/// - Parameter originalName: The name of the entity in the previous version, as a literal:
///   `@Model(originalName: "Memo")`. Its rows are kept.
@attached(
  member, conformances: PersistentModel,
  names: named(_$storage), named(_modelStorage), named(_modelDescriptor), named(_$descriptor),
  named(schemaMetadata), named(_$properties), named(_$firstSlot), named(_$isEqual),
  named(init(_modelStorage:)))
@attached(memberAttribute)
@attached(extension, conformances: PersistentModel)
public macro Model(originalName: String? = nil) =
  #externalMacro(module: "InstarMacros", type: "ModelMacro")

/// Gives an actor its own context; see ``ModelActor``.
///
/// Adds `modelContainer`, `modelExecutor` and the initializer `init(modelContainer:)`. Other properties need initial
/// values, or the actor needs its own initializers.
///
/// - Parameter disableGenerateInit: Whether to leave out `init(modelContainer:)`, as a literal. The actor's own
///   initializers then set `modelContainer` and `modelExecutor`.
@attached(member, names: named(modelExecutor), named(modelContainer), named(init))
@attached(extension, conformances: ModelActor)
public macro ModelActor(disableGenerateInit: Bool = false) =
  #externalMacro(module: "InstarMacros", type: "ModelActorMacro")

// A pack of models, as Foundation's macro has a pack: with one `Model`, the compiler (6.3) chooses Foundation's macro
// for a comparison of optionals.

/// A condition on models, written in Swift. In addition to Foundation's `#Predicate` it can contain other predicates.
///
/// ```swift
/// let isOpen = #Predicate<Note> { !$0.isDone }
/// let isDue = #Predicate<Note> { isOpen.evaluate($0) && $0.date < today }
/// ```
///
/// Foundation's own macro supports the second line on Apple's platforms only.
@freestanding(expression)
public macro Predicate<each Model: PersistentModel>(
  _ body: (repeat each Model) -> Bool
) -> Predicate<repeat each Model> =
  #externalMacro(module: "InstarMacros", type: "PredicateMacro")

/// The expansion of `#Predicate` for a model. Do not use it directly.
@freestanding(expression)
public macro _FoundationPredicate<each Input>(
  _ body: (repeat each Input) -> Bool
) -> Predicate<repeat each Input> =
  #externalMacro(module: "FoundationMacros", type: "PredicateMacro")

/// Describes an attribute of a model.
///
/// ```swift
/// @Attribute(.unique) var uid: String
/// @Attribute(originalName: "text") var content: String   // 'text' in the previous version
/// ```
///
/// - Parameters:
///   - options: Properties of the values or of their storage, such as `.unique`.
///   - originalName: The name of the property in the previous version. The column is renamed and keeps its values.
///   - hashModifier: Any text. Changing it makes two otherwise equal versions different.
@attached(peer)
public macro Attribute(
  _ options: Schema.Attribute.Option..., originalName: String? = nil, hashModifier: String? = nil
) = #externalMacro(module: "InstarMacros", type: "AttributeMacro")

/// Describes a relationship of a model.
///
/// ```swift
/// @Relationship(deleteRule: .cascade, inverse: \Note.folder) var notes: [Note] = []
/// ```
///
/// Write `inverse` on one side only; Instar infers the other side. If both sides name it, each macro needs the
/// expansion of the other, and the compiler reports a circular reference.
///
/// - Parameters:
///   - options: Properties of the relationship, such as `.ordered`.
///   - deleteRule: What a save does with the related models when it deletes this one.
///   - minimumModelCount: The minimum number of related models at a save.
///   - maximumModelCount: The maximum number of related models at a save; 0 for no limit.
///   - originalName: The name of the property in the previous version. The links are kept.
///   - inverse: The relationship of the other model that mirrors this one.
///   - hashModifier: Any text. Changing it makes two otherwise equal versions different.
@attached(peer)
public macro Relationship(
  _ options: Schema.Relationship.Option...,
  deleteRule: Schema.Relationship.DeleteRule = .nullify,
  minimumModelCount: Int? = 0, maximumModelCount: Int? = 0, originalName: String? = nil,
  inverse: AnyKeyPath? = nil, hashModifier: String? = nil
) = #externalMacro(module: "InstarMacros", type: "RelationshipMacro")

/// Makes groups of properties of a model unique.
///
/// ```swift
/// @Model final class Person {
///   #Unique<Person>([\.number], [\.givenName, \.familyName])
///   …
/// }
/// ```
///
/// Write it in the body of the model. If a row already has the values of an inserted model's group, a save updates
/// that row (upsert).
///
/// - Parameter constraints: Groups of properties that have one column each. The values of a group occur once together.
@freestanding(declaration)
public macro Unique<T: PersistentModel>(_ constraints: [PartialKeyPath<T>]...) =
  #externalMacro(module: "InstarMacros", type: "ConstraintMacro")

/// Creates indexes over groups of properties of a model.
///
/// ```swift
/// @Model final class Person {
///   #Index<Person>([\.familyName], [\.familyName, \.givenName])
///   …
/// }
/// ```
///
/// Write it in the body of the model.
///
/// - Parameter indices: Groups of properties, in the order of the index.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indices: [PartialKeyPath<T>]...) =
  #externalMacro(module: "InstarMacros", type: "ConstraintMacro")

/// Creates indexes of given kinds over groups of properties of a model.
///
/// ```swift
/// #Index<Place>(
///   .binary([\.name]),
///   .named("byVisit", [.descending(\.visit), .ascending(\.name)]),
///   .named("byOpenName", [\.name], where: "ZISOPEN = 1"))
/// ```
///
/// - Parameter indices: Kinds with groups of properties. `.rtree` has no effect.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indices: Schema.Index<T>...) =
  #externalMacro(module: "InstarMacros", type: "ConstraintMacro")

extension Schema {
  /// An index of `#Index`.
  public struct Index<Model: PersistentModel> {
    /// A property in an index, with its direction.
    public struct Element {
      let property: PartialKeyPath<Model>
      let isAscending: Bool

      /// Smaller values first.
      public static func ascending(_ property: PartialKeyPath<Model>) -> Element {
        Element(property: property, isAscending: true)
      }

      /// Greater values first.
      public static func descending(_ property: PartialKeyPath<Model>) -> Element {
        Element(property: property, isAscending: false)
      }
    }

    /// `nil` if Instar names the index after its properties.
    let name: String?
    let elements: [Element]
    let condition: String?

    private init(_ name: String?, _ elements: [Element], _ condition: String?) {
      self.name = name
      self.elements = elements
      self.condition = condition
    }

    /// An index in ascending order.
    public static func binary(_ properties: [PartialKeyPath<Model>]) -> Index {
      Index(nil, properties.map(Element.ascending), nil)
    }

    /// An index in ascending order with a name, as in a model of Core Data.
    ///
    /// - Parameter condition: The rows in the index, as SQL over the columns of the store's table: `"ZISOPEN = 1"`.
    ///   `nil` for all.
    public static func named(
      _ name: String, _ properties: [PartialKeyPath<Model>], where condition: String? = nil
    ) -> Index {
      Index(name, properties.map(Element.ascending), condition)
    }

    /// An index with a name, and with a direction for each property.
    public static func named(
      _ name: String, _ elements: [Element], where condition: String? = nil
    ) -> Index {
      Index(name, elements, condition)
    }

    /// An index for ranges of coordinates. It has no effect, because Core Data has such indexes on Apple's platforms
    /// only.
    public static func rtree(_ properties: [PartialKeyPath<Model>]) -> Index {
      Index(nil, [], nil)
    }
  }
}

/// Keeps a stored property of a model out of the schema and the store.
///
/// ```swift
/// @Transient var isOpen = false
/// ```
///
/// The property needs an initial value or an optional type, because Instar calls no initializer of the class when it
/// reads a model from a store. A computed property needs no `@Transient`; both are as in
/// [SwiftData](https://developer.apple.com/documentation/swiftdata/transient()).
@attached(peer)
public macro Transient() = #externalMacro(module: "InstarMacros", type: "TransientMacro")

/// Maps a model to an ordinary table of a plain store.
///
/// ```swift
/// @Table("note", .check("length(title) > 0"))
/// @Model final class Note {
///   @Column(.primaryKey) var id: Int
///   var title: String                                   // title TEXT NOT NULL
///   @Column("created", .encoding(.unixSeconds)) var createdAt: Date
///   @Column(.onDelete(.cascade)) var folder: Folder?    // folder_id REFERENCES folder(id)
///   …
/// }
/// ```
///
/// All models of a schema have `@Table`, or none. The default name of the table is that of the class in snake case.
///
/// - Parameter options: Constraints and properties of the table, such as `.strict`.
@attached(peer)
public macro Table(_ options: Schema.Table.Option...) =
  #externalMacro(module: "InstarMacros", type: "TableMacro")

/// Maps a model to an ordinary table with the given name.
@attached(peer)
public macro Table(_ name: String, _ options: Schema.Table.Option...) =
  #externalMacro(module: "InstarMacros", type: "TableMacro")

/// Describes the column of a property in a plain store. See ``Table(_:_:)``.
///
/// - Parameter options: The type, encoding, constraints and foreign key of the column.
@attached(peer)
public macro Column(_ options: Schema.Column.Option...) =
  #externalMacro(module: "InstarMacros", type: "ColumnMacro")

/// Describes the column of a property in a plain store, with its name.
@attached(peer)
public macro Column(_ name: String, _ options: Schema.Column.Option...) =
  #externalMacro(module: "InstarMacros", type: "ColumnMacro")

/// Makes a property read and write a slot of its model's storage. ``Model()`` attaches it; do not write it yourself.
///
/// - Parameters:
///   - slot: The index of the property among the persisted ones of its class.
///   - model: The name of the class, if it may inherit from a model or have subclasses.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_), prefixed(_$type_))
public macro _PersistedProperty(_ slot: Int, of model: StaticString? = nil) =
  #externalMacro(module: "InstarMacros", type: "PersistedPropertyMacro")

/// Makes the shared library of this file an Instar plugin with the given plans.
///
/// ```swift
/// #InstarPlugin(NotesMigrationPlan.self)
/// ```
///
/// Write it once in each plugin, at file scope. It declares the C function that the worker calls to get the plans,
/// and an ELF note with the ABI number of the SDK, its Swift version and the names of the plans. Other programs read
/// the note without loading the plugin (`readelf -n` shows it).
///
/// - Parameter plans: The types of the plans, each followed by `.self`; at least one.
@freestanding(declaration, names: named(instar_plugin_plans), named(instar_plugin_note))
public macro InstarPlugin(_ plans: any SchemaMigrationPlan.Type...) =
  #externalMacro(module: "InstarMacros", type: "InstarPluginMacro")

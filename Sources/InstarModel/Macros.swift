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
/// Every stored `var` is persisted except those marked ``Transient()``, `lazy` and `static` ones.
/// Computed properties and methods are left alone. The class needs an initializer of its own. A
/// property without `Attribute` or `Relationship` is what its type says: a model, an optional model
/// or an array of models is a relationship, everything else an attribute. An initial value is also
/// the default that existing rows get when a version adds the property.
///
/// A model may inherit from another one. Both are entities; their rows share one table, and a fetch of the superclass
/// finds those of its subclasses too. Only the class that others inherit from is not `final`.
///
/// ```swift
/// @Model class Region { var name: String; … }
/// @Model final class Country: Region { var capital: String?; … }
/// ```
@attached(
  member, conformances: PersistentModel,
  names: named(_$storage), named(_modelStorage), named(_modelDescriptor), named(_$descriptor),
  named(schemaMetadata), named(_$properties), named(_$firstSlot), named(_$isEqual),
  named(init(_modelStorage:)))
@attached(memberAttribute)
@attached(extension, conformances: PersistentModel)
public macro Model() = #externalMacro(module: "InstarMacros", type: "ModelMacro")

/// The same, of a class that had another name in the version before.
///
/// ```swift
/// @Model(originalName: "Memo") final class Note { … }
/// ```
///
/// - Parameter originalName: The name that the entity has in the schema of the version before, as a literal.
@attached(
  member, conformances: PersistentModel,
  names: named(_$storage), named(_modelStorage), named(_modelDescriptor), named(_$descriptor),
  named(schemaMetadata), named(_$properties), named(_$firstSlot), named(_$isEqual),
  named(init(_modelStorage:)))
@attached(memberAttribute)
@attached(extension, conformances: PersistentModel)
public macro Model(originalName: String) =
  #externalMacro(module: "InstarMacros", type: "ModelMacro")

/// Makes an actor work on models with a context of its own; see ``ModelActor``.
///
/// It gets `modelContainer`, `modelExecutor` and the initializer `init(modelContainer:)`. Other properties need initial
/// values, or the actor initializers of its own.
@attached(member, names: named(modelExecutor), named(modelContainer), named(init))
@attached(extension, conformances: ModelActor)
public macro ModelActor() = #externalMacro(module: "InstarMacros", type: "ModelActorMacro")

/// The same, of an actor whose own initializers set `modelContainer` and `modelExecutor`.
///
/// - Parameter disableGenerateInit: whether `init(modelContainer:)` is left out, as a literal.
@attached(member, names: named(modelExecutor), named(modelContainer), named(init))
@attached(extension, conformances: ModelActor)
public macro ModelActor(disableGenerateInit: Bool) =
  #externalMacro(module: "InstarMacros", type: "ModelActorMacro")

/// What is asked of models, as Swift: Foundation's `#Predicate`, which may also consist of other predicates.
///
/// ```swift
/// let isOpen = #Predicate<Note> { !$0.isDone }
/// let isDue = #Predicate<Note> { isOpen.evaluate($0) && $0.date < today }
/// ```
///
/// Foundation has the latter on Apple's platforms only.
@freestanding(expression)
public macro Predicate<Model: PersistentModel>(_ body: (Model) -> Bool) -> Predicate<Model> =
  #externalMacro(module: "InstarMacros", type: "PredicateMacro")

/// What `#Predicate` of a model expands to. Not to be used as such.
@freestanding(expression)
public macro _FoundationPredicate<each Input>(
  _ body: (repeat each Input) -> Bool
) -> Predicate<repeat each Input> =
  #externalMacro(module: "FoundationMacros", type: "PredicateMacro")

/// Describes a property of a model that holds a value.
///
/// ```swift
/// @Attribute(.unique) var uid: String
/// @Attribute(originalName: "text") var content: String   // was 'text' in the version before
/// ```
///
/// - Parameters:
///   - options: What else holds for the values, for example that they are unique.
///   - originalName: The name the property had in the version before this one. The column is then
///     renamed and keeps its values.
///   - hashModifier: Any text. Changing it makes two versions differ that look the same otherwise.
@attached(peer)
public macro Attribute(
  _ options: Schema.Attribute.Option..., originalName: String? = nil, hashModifier: String? = nil
) = #externalMacro(module: "InstarMacros", type: "AttributeMacro")

/// Describes a property of a model that refers to other models.
///
/// ```swift
/// @Relationship(deleteRule: .cascade, inverse: \Note.folder) var notes: [Note] = []
/// ```
///
/// Write `inverse` on one side only; the other side is inferred from it. Named on both sides,
/// each macro would need the expansion of the other, and the compiler reports a circular reference.
///
/// - Parameters:
///   - options: What else holds for the relationship.
///   - deleteRule: What happens to the models referred to when this one is deleted.
///   - minimumModelCount: How many models there must be when the context is saved.
///   - maximumModelCount: How many there may be; 0 is no limit.
///   - originalName: The name the property had in the version before this one.
///   - inverse: The property at the other end that is kept in step with this one.
///   - hashModifier: Any text. Changing it makes two versions differ that look the same otherwise.
@attached(peer)
public macro Relationship(
  _ options: Schema.Relationship.Option...,
  deleteRule: Schema.Relationship.DeleteRule = .nullify,
  minimumModelCount: Int? = 0, maximumModelCount: Int? = 0, originalName: String? = nil,
  inverse: AnyKeyPath? = nil, hashModifier: String? = nil
) = #externalMacro(module: "InstarMacros", type: "RelationshipMacro")

/// Lets a group of values of a model occur only once together.
///
/// ```swift
/// @Model final class Person {
///   #Unique<Person>([\.number], [\.givenName, \.familyName])
///   …
/// }
/// ```
///
/// Written in the body of the model. An inserted model whose group of values a row has already takes that row's place when it
/// is saved (upsert).
///
/// - Parameter constraints: Each a group of properties of the model, stored in one column each.
@freestanding(declaration)
public macro Unique<T: PersistentModel>(_ constraints: [PartialKeyPath<T>]...) =
  #externalMacro(module: "InstarMacros", type: "ConstraintMacro")

/// Keeps an index over groups of properties of a model.
///
/// ```swift
/// @Model final class Person {
///   #Index<Person>([\.familyName], [\.familyName, \.givenName])
///   …
/// }
/// ```
///
/// Written in the body of the model.
///
/// - Parameter indices: Each a group of properties of the model, in the order of the index.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indices: [PartialKeyPath<T>]...) =
  #externalMacro(module: "InstarMacros", type: "ConstraintMacro")

/// Keeps indexes of given kinds over groups of properties of a model.
///
/// ```swift
/// #Index<Place>(
///   .binary([\.name]),
///   .named("byVisit", [.descending(\.visit), .ascending(\.name)]),
///   .named("byOpenName", [\.name], where: "ZISOPEN = 1"))
/// ```
///
/// - Parameter indices: Each a kind with a group of properties. `.rtree` is accepted and has no effect.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indices: Schema.Index<T>...) =
  #externalMacro(module: "InstarMacros", type: "ConstraintMacro")

extension Schema {
  /// An index that `#Index` keeps, by its kind.
  public struct Index<Model: PersistentModel> {
    /// A property that an index covers, and which of its values come first.
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

    /// `nil` for one that is called by what it covers.
    let name: String?
    let elements: [Element]
    let condition: String?

    private init(_ name: String?, _ elements: [Element], _ condition: String?) {
      self.name = name
      self.elements = elements
      self.condition = condition
    }

    /// Ordered by value.
    public static func binary(_ properties: [PartialKeyPath<Model>]) -> Index {
      Index(nil, properties.map(Element.ascending), nil)
    }

    /// Ordered by value, smaller ones first, under the name that a model of Core Data gives it.
    ///
    /// - Parameter condition: Which rows it covers, as SQL over the columns of the table as the store has them:
    ///   `"ZISOPEN = 1"`. `nil` for all.
    public static func named(
      _ name: String, _ properties: [PartialKeyPath<Model>], where condition: String? = nil
    ) -> Index {
      Index(name, properties.map(Element.ascending), condition)
    }

    /// The same, with the direction of each property.
    public static func named(
      _ name: String, _ elements: [Element], where condition: String? = nil
    ) -> Index {
      Index(name, elements, condition)
    }

    /// For ranges of coordinates. Core Data keeps such indexes on Apple's platforms only; here it is none.
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
/// The property needs an initial value or an optional type: a model that is read from a store does
/// not pass through the initializers of its class.
@attached(peer)
public macro Transient() = #externalMacro(module: "InstarMacros", type: "TransientMacro")

/// Keeps a model in an ordinary table of a plain store, as any language writes it.
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
/// All models of a schema have tables, or none. The name is the class's in snake case where none is given.
///
/// - Parameter options: What else holds for the table.
@attached(peer)
public macro Table(_ options: Schema.Table.Option...) =
  #externalMacro(module: "InstarMacros", type: "TableMacro")

/// The same, with the name of the table.
@attached(peer)
public macro Table(_ name: String, _ options: Schema.Table.Option...) =
  #externalMacro(module: "InstarMacros", type: "TableMacro")

/// Says which column of a plain store a property is kept in, and how. See ``Table(_:_:)``.
///
/// - Parameter options: What else holds for the column.
@attached(peer)
public macro Column(_ options: Schema.Column.Option...) =
  #externalMacro(module: "InstarMacros", type: "ColumnMacro")

/// The same, with the name of the column.
@attached(peer)
public macro Column(_ name: String, _ options: Schema.Column.Option...) =
  #externalMacro(module: "InstarMacros", type: "ColumnMacro")

/// Makes a property read and write a slot of its model's storage. ``Model()`` attaches it; it is
/// not meant to be written by hand.
///
/// - Parameters:
///   - slot: The place of the property among the persisted ones of its class, from 0.
///   - model: The class, where it may inherit from a model or be inherited from.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_), prefixed(_$type_))
public macro _PersistedProperty(_ slot: Int, of model: StaticString? = nil) =
  #externalMacro(module: "InstarMacros", type: "PersistedPropertyMacro")

/// Makes the shared library this file is compiled into an Instar plugin that offers `plans`.
///
/// ```swift
/// #InstarPlugin(NotesMigrationPlan.self)
/// ```
///
/// Written once per plugin, at file scope. It declares the C function the worker calls for the
/// plans, and an ELF note with the SDK's ABI number, its compiler version and the names of the
/// plans, so that these can be read without loading the plugin (`readelf -n` shows it).
///
/// - Parameter plans: The plans, each as its type followed by `.self`; at least one.
@freestanding(declaration, names: named(instar_plugin_plans), named(instar_plugin_note))
public macro InstarPlugin(_ plans: any SchemaMigrationPlan.Type...) =
  #externalMacro(module: "InstarMacros", type: "InstarPluginMacro")

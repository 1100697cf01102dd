package import Foundation
package import InstarSchema
import InstarStore

extension Schema {
  /// Returns the Swift type that decodes an attribute, or a field of a composite one ("author.name"); `nil` if the
  /// schema has no such type.
  package func decodedType(of attribute: String, in entity: String) -> (any Decodable.Type)? {
    guard let model = modelTypes.byEntityName[entity] as? any PersistentModel.Type else {
      return nil
    }
    let names = attribute.split(separator: ".", maxSplits: 1).map(String.init)
    guard let property = model._modelDescriptor.properties.first(where: { $0.name == names.first }),
      case .attribute(let kind) = property.kind, kind.transformation == nil
    else { return nil }
    let type =
      names.count == 1
      ? kind.valueType : kind.leaves?.first { $0.name == names[1] }?.valueType
    return type as? any Decodable.Type
  }

  /// Returns whether stored bytes, JSON or a keyed archive, contain a value of a type.
  package static func canDecode(_ data: Data, as type: any Decodable.Type) -> Bool {
    do {
      _ = try JSONDecoder().decode(type, from: ArchivedCollection.json(of: data) ?? data)
      return true
    } catch {
      return false
    }
  }
}

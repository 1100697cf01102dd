import InstarSchema

// The errors of properties that cannot be read or stored. Accessors cannot throw, so a context or store keeps them.

extension ModelStorage {
  func unstorable(_ error: any Error, at slot: Int) -> InstarError {
    let cause = (error as? InstarError)?.cause ?? "\(error)"
    return InstarError(
      .invalidModel,
      "cannot store '\(descriptor.properties[slot].name)' of \(title)",
      cause: cause, next: (error as? InstarError)?.next)
  }

  /// Keeps the error of a property that cannot be read for the next fetch or save: of the model's context, or of any
  /// context if that is gone. A `deinit` may read any property, and often runs after the context was released.
  func noteUnreadable(_ slot: Int) {
    if let context {
      context.note(unreadable(slot))
    } else if hasLostContext, model != nil, let entity {
      entity.store.note(unreadable(slot))
    }
  }

  /// Returns why a property cannot be read: its row was deleted, has no value, or a value that is not of its type.
  ///
  /// - Parameter stored: The stored value, if it is not in the slot.
  func unreadable(_ slot: Int, stored: Slot? = nil) -> InstarError {
    let name = descriptor.properties[slot].name
    var error = InstarError(
      .missingRequiredValues, "cannot read \(title)",
      cause: "'\(name)' has no value",
      next: "set the property before reading it, give it an initial value, or make it optional")
    let stored = stored ?? slots[slot]
    if state == .gone {
      error.cause = "'\(name)' was read after the row was deleted"
      error.next = nil
      if context == nil {
        error.cause += " or the context was released"
        // Without its context a model has no relationships, whatever was read before.
        error.next =
          "keep the context as long as its models"
          + (attribute(at: slot) == nil ? "" : ", or read '\(name)' earlier")
      }
    } else if hasLostRow, case .unloaded = stored {
      error.cause = "'\(name)' was read after another context or process deleted the row"
      error.next = "call rollback(), or delete the model here too"
    } else if let kind = attribute(at: slot),
      let value = UnknownEnumValue(in: stored, of: kind.valueType)
    {
      error.cause =
        "'\(name)\(value.path)' holds \(value.stored); \(value.type) accepts \(value.accepted)"
      error.next = "add the stored value to \(value.type) in this version of the models"
    } else if let kind = attribute(at: slot), !stored.isNull {
      error.cause = "the value stored in '\(name)' is not of type \(kind.valueType)"
      error.next =
        "correct the value in the store, or declare '\(name)' with a type that reads it in this version of the models"
      if let reason = kind.refusal?(stored) { error.cause += ": \(reason)" }
    }
    return error
  }
}

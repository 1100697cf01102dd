#if !canImport(Darwin)
  /// Takes the place of Foundation's class, which Linux does not have, so that code with
  /// `context.undoManager = UndoManager()` compiles. It records nothing.
  open class UndoManager {
    /// Creates an undo manager that records nothing.
    public init() {}
    /// Always false.
    public var canUndo: Bool { false }
    /// Always false.
    public var canRedo: Bool { false }
    /// Has no effect.
    open func undo() {}
    /// Has no effect.
    open func redo() {}
    /// Has no effect.
    open func removeAllActions() {}
  }
#endif

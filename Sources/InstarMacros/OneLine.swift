import SwiftSyntax

extension SyntaxProtocol {
  /// The code on one line, without comments; `nil` where it needs several, as a text of several lines and `#if` do.
  var oneLine: String? {
    var text = ""
    for token in tokens(viewMode: .sourceAccurate) {
      guard ![.poundIf, .multilineStringQuote].contains(token.tokenKind),
        !token.text.contains(where: \.isNewline)
      else {
        return nil
      }
      if !token.leadingTrivia.isEmpty { text += " " }
      if token.beginsFurtherStatement { text += "; " }
      text += token.text
      if !token.trailingTrivia.isEmpty { text += " " }
    }
    return text
  }
}

extension TokenSyntax {
  /// Whether a statement or member begins that only a new line divides from the one before.
  fileprivate var beginsFurtherStatement: Bool {
    var node = Syntax(self)
    while let parent = node.parent, parent.position == node.position {
      if let statement = parent.as(CodeBlockItemSyntax.self) {
        return statement.follows(\.semicolon)
      }
      if let member = parent.as(MemberBlockItemSyntax.self) { return member.follows(\.semicolon) }
      node = parent
    }
    return false
  }

  /// Whether all that follows on the line is `}` and comments, so that nothing else is further right if the line gets
  /// longer here.
  var isLastOnLine: Bool {
    var token = self
    while let next = token.nextToken(viewMode: .sourceAccurate) {
      let space = token.trailingTrivia.description + next.leadingTrivia.description
      if space.contains(where: \.isNewline) || next.tokenKind == .endOfFile { return true }
      guard next.tokenKind == .rightBrace else { return false }
      token = next
    }
    return true
  }

  /// Whether a new line divides the token from the one before.
  var beginsLine: Bool {
    guard let previous = previousToken(viewMode: .sourceAccurate) else { return true }
    return (previous.trailingTrivia.description + leadingTrivia.description)
      .contains(where: \.isNewline)
  }
}

extension SyntaxProtocol {
  /// Whether another node of the same kind is directly before this one, without a separator.
  fileprivate func follows(_ separator: KeyPath<Self, TokenSyntax?>) -> Bool {
    guard let siblings = parent?.children(viewMode: .sourceAccurate),
      let index = siblings.index(of: Syntax(self)), index != siblings.startIndex
    else { return false }
    return siblings[siblings.index(before: index)].as(Self.self)?[keyPath: separator] == nil
  }
}

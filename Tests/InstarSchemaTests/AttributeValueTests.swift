import Foundation
import InstarSchema
import Testing

@Suite("The default of an attribute, as JSON")
struct AttributeValueTests {
  private func text(_ value: AttributeValue) throws -> String {
    String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
  }

  private func value(_ text: String) throws -> AttributeValue {
    try JSONDecoder().decode(AttributeValue.self, from: Data(text.utf8))
  }

  @Test(
    "a default is an object with the kind of the value",
    arguments: [
      (AttributeValue.integer(-3), #"{"integer":{"_0":-3}}"#),
      (.real(1.5), #"{"real":{"_0":1.5}}"#),
      (.text("é\u{0}"), #"{"text":{"_0":"é\u0000"}}"#),
      (.blob([0, 255]), #"{"blob":{"_0":[0,255]}}"#),
      (.real(.infinity), #"{"real":{"_0":"inf"}}"#),
      (.real(-.infinity), #"{"real":{"_0":"-inf"}}"#),
    ])
  func roundTrip(value: AttributeValue, text: String) throws {
    #expect(try self.text(value) == text)
    #expect(try self.value(text) == value)
  }

  @Test("a default may be NaN")
  func notANumber() throws {
    guard case .real(let number) = try value(text(.real(.nan))) else {
      Issue.record("not a real")
      return
    }
    #expect(number.isNaN)
  }

  @Test(
    "a default in any other form is refused",
    arguments: [
      "{}", #"{"real":{"_0":"many"}}"#, #"{"real":{}}"#, #"{"number":{"_0":1}}"#,
      #"{"integer":{"_0":1},"text":{"_0":"a"}}"#, #"{"integer":{"_0":1.5}}"#,
    ])
  func refused(text: String) {
    #expect(throws: DecodingError.self) { try value(text) }
  }
}

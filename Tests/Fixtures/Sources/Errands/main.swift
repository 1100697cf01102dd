// swift-format-ignore-file
import Instar

try makeStore(ErrandsV1.self) { context in
    let marks = ["home", "none", "shop"].map { name in
        let mark = ErrandsV1.Mark()
        mark.name = name
        return mark
    }
    for mark in marks { context.insert(mark) }
    for (title, own) in [("Milk", [marks[2]]), ("Paint", [marks[0]]), ("Rest", [])] {
        let errand = ErrandsV1.Errand()
        errand.title = title
        errand.marks = own
        context.insert(errand)
        if title == "Paint" {
            let step = ErrandsV1.Errand()
            step.title = "Brush"
            errand.steps = [step]
        }
    }
}

let container = try makeContainer(ErrandsV2.self)
let context = ModelContext(container)
let errand = ErrandsV2.Errand()
let other = ErrandsV2.Errand()
let mark = ErrandsV2.Mark()
for model in [errand, other] { context.insert(model) }
context.insert(mark)
errand.marks = [mark]
try context.save()

// Neither array is the inverse of the other, and a mark is in the array of one errand.
check(mark.errands.isEmpty)
mark.errands = [other]
other.marks.append(mark)
try context.save()
let again = ModelContext(container)
let errands = try again.fetch(FetchDescriptor<ErrandsV2.Errand>())
check(errands.map(\.marks.count).sorted() == [0, 1])
check(errands.first { !$0.marks.isEmpty }?.persistentModelID == other.persistentModelID)
check(try again.fetch(FetchDescriptor<ErrandsV2.Mark>()).first?.errands.map(\.persistentModelID) == [other.persistentModelID])
check(errands.allSatisfy { $0.steps.isEmpty && $0.parent == nil })

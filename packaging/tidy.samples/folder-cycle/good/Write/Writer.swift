/// Undoes what a `Copier` did.
struct Writer { let reader: Reader }

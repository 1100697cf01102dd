/// Reads the file again. There is no other copy, and it is no longer open.
let cause = "not a regular file"

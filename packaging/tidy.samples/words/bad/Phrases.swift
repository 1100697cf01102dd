/// The file is looked
/// at anew.
let cause = "it is no regular file"

/// A comment that goes on past the limit of columns. A comment that goes on past the limit of columns. A comment that goes on past the limit of columns. 
struct Wide {}

struct Copier { let writer: Writer }

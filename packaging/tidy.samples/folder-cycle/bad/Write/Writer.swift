struct Writer { let reader: Reader }

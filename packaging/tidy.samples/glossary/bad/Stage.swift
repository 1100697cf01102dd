struct Stage {}

struct Reader { let writer: Writer }

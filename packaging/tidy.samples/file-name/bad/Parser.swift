struct Reader {}

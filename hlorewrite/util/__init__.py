"""What every layer may use: sizes and units, tables, progress, writing files."""

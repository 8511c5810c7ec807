"""What every layer may use: sizes and units, tables, tolerances, progress, writing files."""

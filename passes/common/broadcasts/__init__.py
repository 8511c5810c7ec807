"""Shared by passes that write broadcasts: chains of selects that are broadcasts, products with masks, what they become."""

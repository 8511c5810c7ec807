"""The rule language: rules and linearity facts as text, matched and applied."""

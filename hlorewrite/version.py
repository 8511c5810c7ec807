"""The version of hlorewrite."""

VERSION = "0.1.2"

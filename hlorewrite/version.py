"""The version of hlorewrite: the one place that states it. Between releases it ends in ``.dev0``."""

VERSION = "0.2.0"

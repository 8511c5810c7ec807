"""The pass share-fragments: fragments that contain another one run it as a separate fragment, compiled once."""

from hlorewrite.pipelines.passes.share_fragments.share_fragments import ShareFragments

__all__ = ["ShareFragments"]

"""What programs of several meshes register with the core, and what users import of them.

``tools/import_layers.py`` reads these tables as imports.
"""

from hlorewrite.util.registered import register

PASSES = {
    "reshard-to-broadcast": "hlorewrite.pipelines.passes.reshard_to_broadcast:ReshardToBroadcast",
    "share-fragments": "hlorewrite.pipelines.passes.share_fragments:ShareFragments",
    "split-stages": "hlorewrite.pipelines.passes.split_stages:SplitStages",
}
SUBCOMMANDS = {
    "reshard": "hlorewrite.pipelines.cli.reshard",
    "pipeline": "hlorewrite.pipelines.cli.command",
}
PUBLIC = {
    "pipeline": "hlorewrite.pipelines.decorator.api",
    "stage": "hlorewrite.pipelines.decorator.marks",
    "stage_layers": "hlorewrite.pipelines.decorator.marks",
    "mean_over_microbatches": "hlorewrite.pipelines.decorator.marks",
    "StageArray": "hlorewrite.pipelines.decorator.stage_array",
    "reshard": "hlorewrite.pipelines.runtime.reshard",
}
"""Names that ``import hlorewrite`` provides, and the module of each."""


def open_door() -> None:
    """Registers the passes, the subcommands and the reader of programs."""
    register(passes=PASSES, subcommands=SUBCOMMANDS, programs="hlorewrite.pipelines.adapter")

"""``hlorewrite estimate``: time, traffic and memory of a training configuration, before it runs."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlorewrite.cost import ModelShape, Options, Parallelism, Topology

HELP = "predict iteration time, traffic and memory of a (p,t,d) training configuration, or search for the best"
DTYPES = {"fp32": "f32", "float32": "f32", "fp16": "f16", "float16": "f16", "bfloat16": "bf16", "fp8": "f8",
          "mxfp8": "mxf8", "fp4": "f4", "nvfp4": "f4", "mxfp4": "f4"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite estimate``."""
    _model_arguments(parser)
    _work_arguments(parser)
    _machine_arguments(parser)
    _output_arguments(parser)


def _model_arguments(parser: argparse.ArgumentParser) -> None:
    shape = parser.add_argument_group("model")
    shape.add_argument("--model", metavar="NAME", default="gpt",
                       help="a known model (gpt3-175b, llama-7b, mixtral-8x7b, vit-base, mamba-1.4b, ...) or a family: "
                            "gpt, llama, moe, vit, mamba")
    shape.add_argument("--layers", type=int, metavar="N", help="l, number of layers")
    shape.add_argument("--hidden", type=int, metavar="N", help="h, width")
    shape.add_argument("--heads", type=int, metavar="N", help="attention heads")
    shape.add_argument("--kv-heads", type=int, metavar="N", help="heads of keys and values (default: that of --heads)")
    shape.add_argument("--seq", type=int, metavar="N", help="s, tokens of a sequence")
    shape.add_argument("--vocab", type=int, metavar="N", help="V, rows of the embedding")
    shape.add_argument("--feed-forward", type=int, metavar="N", help="width of the feed-forward part (default: 4h)")
    shape.add_argument("--experts", type=int, metavar="N", help="experts of a layer")
    shape.add_argument("--top-k", type=int, metavar="N", help="experts a token goes to")
    shape.add_argument("--head-dim", type=int, metavar="N", help="width of a head (default: hidden / heads)")
    shape.add_argument("--query-rank", type=int, metavar="N", help="latent attention: rank of the queries")
    shape.add_argument("--kv-rank", type=int, metavar="N", help="latent attention (MLA): rank of keys and values")
    shape.add_argument("--rope-dim", type=int, metavar="N", help="latent attention: width of a head's rotary part")
    shape.add_argument("--dense-layers", type=int, metavar="N", help="layers at the start without experts")
    shape.add_argument("--dense-feed-forward", type=int, metavar="N", help="width of their feed-forward part")
    shape.add_argument("--shared-experts", type=int, metavar="N",
                       help="experts that each token goes to, in addition to its k")
    shape.add_argument("--window", type=int, metavar="N", help="tokens that every second layer attends to")
    shape.add_argument("--parameters", type=float, metavar="N", help="parameters, instead of the count from the shape")


def _work_arguments(parser: argparse.ArgumentParser) -> None:
    work = parser.add_argument_group("parallelism and batches")
    work.add_argument("--pp", type=int, metavar="N", default=1, help="p, pipeline stages (default: 1)")
    work.add_argument("--tp", type=int, metavar="N", default=1, help="t, tensor-parallel size (default: 1)")
    work.add_argument("--dp", type=int, metavar="N", help="d, data-parallel size (default: GPUs / (p*t*cp))")
    work.add_argument("--cp", type=int, metavar="N", default=1, help="context-parallel size (default: 1)")
    work.add_argument("--ep", type=int, metavar="N", default=1, help="expert-parallel size, divides t*cp*d (1)")
    work.add_argument("--global-batch", type=int, metavar="N", required=True, help="gb, sequences of an iteration")
    work.add_argument("--micro-batch", type=int, metavar="N", default=1,
                      help="b, sequences of a micro-batch (default: 1)")
    work.add_argument("--virtual-stages", type=int, metavar="N", default=1,
                      help="v, model chunks of a stage (default: 1)")
    work.add_argument("--schedule", metavar="NAME", default="1f1b", help="1f1b, gpipe or interleaved (default: 1f1b)")
    work.add_argument("--recompute", metavar="KIND", nargs="?", const="full", default="none",
                      help="none, selective or full; alone means full (default: none)")
    work.add_argument("--recompute-layers", type=int, metavar="N", help="layers of a stage that recompute (all)")
    work.add_argument("--sequence-parallel", action="store_true", help="split norms and dropouts over the sequence")
    work.add_argument("--scatter-gather", action="store_true", help="tensor ranks share the stage-to-stage transfers")
    work.add_argument("--zero", type=int, metavar="N", default=0, help="ZeRO stage; 2 and 3 run as FSDP (default: 0)")
    work.add_argument("--dtype", metavar="TYPE", help="bf16, f16, f32, f8, mxf8, f4; the last three for "
                      "linear products only (default: bf16, f16 on Volta)")
    work.add_argument("--grad-bytes", type=int, metavar="N",
                      help="bytes of a gradient as it is reduced (default: the dtype's)")
    work.add_argument("--flash-attention", action=argparse.BooleanOptionalAction, default=None,
                      help="attention scores stay on chip (default: on Hopper and later)")
    for name, what in (("tensor", "tensor-parallel communication"), ("pipeline", "transfers between stages"),
                       ("data", "the gradient reduction"), ("expert", "expert all-to-alls")):
        work.add_argument(f"--{name}-overlap", type=float, metavar="X",
                          help=f"share of {what} that compute hides (default: the stack's)")
    work.add_argument("--fsdp-overlap", type=float, metavar="X",
                      help="share of compute that can hide FSDP's communication (default: the stack's)")
    work.add_argument("--dispatch-once", action=argparse.BooleanOptionalAction, default=None,
                      help="tokens go to another host once for all experts there (default: the stack's)")
    work.add_argument("--expert-imbalance", type=float, metavar="X", default=1.0,
                      help="load of the fullest expert rank over the mean (default: 1)")


def _machine_arguments(parser: argparse.ArgumentParser) -> None:
    machine = parser.add_argument_group("machine")
    machine.add_argument("--topology", required=True, metavar="NAME[:HOSTSxGPUS]", help="such as h200:4x8, or a file")
    machine.add_argument("--gpus", type=int, metavar="N", help="number of GPUs, instead of HOSTSxGPUS")
    machine.add_argument("--stack", metavar="NAME", default="auto",
                         help="profile of the training stack: xla, xla-flash, megatron, megatron-26.04, megatron-lm, "
                              "torch-fsdp, torch-fsdp2 (default: auto, the one fitted to configurations like yours)")
    machine.add_argument("--utilisation", type=float, metavar="U",
                         help="share of peak FLOP/s that compute reaches (default: modelled)")


def _output_arguments(parser: argparse.ArgumentParser) -> None:
    out = parser.add_argument_group("output")
    out.add_argument("--search", action="store_true", help="rank all (p,t,d,b) that divide evenly and fit in memory")
    out.add_argument("--top", type=int, metavar="N", default=10, help="rows of --search to print (default: 10)")
    out.add_argument("--traffic", metavar="FILE", help="write bytes from GPU to GPU: .npy, .csv, or .npz by category")
    out.add_argument("--plot", metavar="FILE", help="draw the breakdown (with --search the frontier): PNG or SVG")
    out.add_argument("--plot-traffic", metavar="FILE", help="draw the traffic matrix: PNG or SVG")
    out.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite estimate``."""
    from hlorewrite.cost import Options, topology
    from hlorewrite.util.write import check_matrix_path

    if args.traffic:
        check_matrix_path(args.traffic)
    shape = chosen_model(args)
    topo = sized(topology(args.topology), args, ":" in args.topology)
    dtype = args.dtype or ("f16" if topo.architecture == "volta" else "bf16")
    options = Options(
        recompute=args.recompute, sequence_parallel=args.sequence_parallel, zero=args.zero,
        dtype=DTYPES.get(dtype, dtype), schedule=args.schedule, flash_attention=args.flash_attention,
        utilisation=args.utilisation, tensor_overlap=args.tensor_overlap, grad_bytes=args.grad_bytes,
        scatter_gather=args.scatter_gather, expert_imbalance=args.expert_imbalance, stack=args.stack,
        recompute_layers=args.recompute_layers, pipeline_overlap=args.pipeline_overlap,
        data_overlap=args.data_overlap, fsdp_overlap=args.fsdp_overlap, expert_overlap=args.expert_overlap,
        dispatch_once=args.dispatch_once)
    if args.search:
        return _search(args, shape, topo, options)
    return _one(args, shape, topo, options)


def chosen_model(args: argparse.Namespace) -> ModelShape:
    """The model the flags describe."""
    from hlorewrite.cost import model
    return model(args.model, layers=args.layers, hidden=args.hidden, heads=args.heads, kv_heads=args.kv_heads,
                 seq=args.seq, vocab=args.vocab, feed_forward=args.feed_forward, experts=args.experts,
                 top_k=args.top_k, parameters_given=args.parameters, head_dim=args.head_dim,
                 query_rank=args.query_rank, kv_rank=args.kv_rank, rope_dim=args.rope_dim,
                 dense_layers=args.dense_layers, dense_feed_forward=args.dense_feed_forward,
                 shared_experts=args.shared_experts, window=args.window)


def sized(topo: Topology, args: argparse.Namespace, explicit: bool) -> Topology:
    """The topology with as many GPUs as the flags ask for; d is derived if it is not given."""
    from hlorewrite.errors import UsageError

    for name in ("pp", "tp", "cp", "dp", "gpus"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name} is {value}", hint="sizes must be at least 1")
    stage = args.pp * args.tp * args.cp
    gpus = args.gpus
    if gpus is None:
        gpus = topo.gpus if explicit or args.dp is None or args.search else stage * args.dp
    elif explicit and gpus > topo.gpus:
        raise UsageError(f"{topo.spec} has {topo.gpus} GPUs, not {gpus}", hint="change --gpus or the topology")
    if args.search:
        return with_gpus(topo, gpus)
    wanted = stage * (args.dp or 1)
    if gpus % wanted:
        what = "p*t" + ("" if args.cp == 1 else "*cp") + ("" if args.dp is None else "*d")
        raise UsageError(f"{what} = {wanted} does not divide the {gpus} GPUs", hint="change --pp, --tp, --dp or --gpus")
    if args.dp is None:
        args.dp = gpus // stage
    return with_gpus(topo, stage * args.dp)


def with_gpus(topo: Topology, gpus: int) -> Topology:
    """Equal hosts, as many as a number of GPUs needs."""
    per_host = max(count for count in range(1, topo.gpus_per_host + 1) if gpus % count == 0)
    return topo.sized(gpus // per_host, per_host)


def _one(args: argparse.Namespace, shape: ModelShape, topo: Topology, options: Options) -> int:
    """One configuration."""
    from hlorewrite.cost import Parallelism, estimate
    from hlorewrite.cost.training.memory import memory_verdict
    from hlorewrite.cost.training.workload import chosen_stack
    sizes = Parallelism(args.pp, args.tp, args.dp, global_batch=args.global_batch, micro_batch=args.micro_batch,
                        ep=args.ep, virtual_stages=args.virtual_stages, cp=args.cp)
    estimated = estimate(shape, sizes, topo, options)
    if args.traffic or args.plot_traffic:
        _traffic(args, shape, sizes, topo, options)
    if args.plot:
        from hlorewrite.cost.training.plots import draw_breakdown, save
        save(draw_breakdown([estimated], [f"({args.pp},{args.tp},{args.dp})"]), args.plot)
    stack, memory = chosen_stack(shape, topo, options), memory_verdict(shape, sizes, topo, options)
    if args.json:
        says = {"stack": stack.name, "memory_fits": memory.fits, "memory_least_bytes": memory.least_bytes}
        print(json.dumps(estimated.as_dict() | _inputs(shape, sizes, topo) | says, indent=2))
    else:
        from hlorewrite.cost.training.search import estimate_text
        print(estimate_text(shape, sizes, topo, estimated, stack, memory))
    return 0


def _inputs(shape: ModelShape, sizes: Parallelism, topo: Topology) -> dict:
    return {"model": shape.name, "parameters": shape.parameters, "topology": topo.spec, "pp": sizes.pp,
            "tp": sizes.tp, "cp": sizes.cp, "dp": sizes.dp, "ep": sizes.ep, "global_batch": sizes.global_batch,
            "micro_batch": sizes.micro_batch, "micro_batches": sizes.micro_batches,
            "virtual_stages": sizes.virtual_stages}


def _traffic(args: argparse.Namespace, shape: ModelShape, sizes: Parallelism, topo: Topology,
             options: Options) -> None:
    """Writes and draws the communication matrix."""
    from hlorewrite.cost.traffic import iteration_transfers, traffic_by_category, traffic_matrix
    from hlorewrite.util.write import write_matrix
    transfers = iteration_transfers(shape, sizes, options)
    total = traffic_matrix(transfers, topo.gpus)
    if args.traffic:
        write_matrix(args.traffic, total, traffic_by_category(transfers, topo.gpus))
    if args.plot_traffic:
        from hlorewrite.cost.training.plots import draw_traffic, save
        save(draw_traffic(total, stage_gpus=sizes.tp * sizes.dp, tensor_gpus=sizes.tp,
                          title=f"{shape.name}, (p,t,d) = ({sizes.pp},{sizes.tp},{sizes.dp})"), args.plot_traffic)


def _search(args: argparse.Namespace, shape: ModelShape, topo: Topology, options: Options) -> int:
    """All configurations, ranked."""
    from hlorewrite.cost.training.search import search, search_text
    candidates = search(shape, topo, args.global_batch, options, most_virtual_stages=args.virtual_stages)
    if args.plot:
        from hlorewrite.cost.training.plots import draw_frontier, save
        save(draw_frontier(candidates), args.plot)
    if args.json:
        rows = [{**_inputs(shape, each.sizes, topo), **each.cost.as_dict()} for each in candidates[:args.top]]
        print(json.dumps({"topology": topo.spec, "fitting": len(candidates), "candidates": rows}, indent=2))
    else:
        print(search_text(shape, topo, candidates, args.top))
    return 0

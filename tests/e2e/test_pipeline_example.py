"""The pipelined GPT of ``examples/`` trains as the unsplit one does."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pipeline_gpt
import pytest

from hlorewrite.pipelines.mpmd.program import Transfer


@pytest.mark.parametrize("schedule, options", [("eager-1f1b", {}), ("1f1b", {"shared": "every-micro-batch"})])
def test_pipeline_gpt(schedule, options):
    cfg = pipeline_gpt.PipelinedGptConfig(stages=2, micro_batches=4, remat=True)
    pipelined = pipeline_gpt.make_step(cfg, "(2x1),(1x2)", schedule, passes="", **options)
    unsplit = jax.jit(functools.partial(pipeline_gpt.step, cfg))
    expected = actual = jax.tree.map(np.asarray, pipeline_gpt.init_state(cfg))
    tokens = np.asarray(jax.random.randint(jax.random.key(1), (4, cfg.batch, cfg.seq + 1), 0, cfg.vocab))
    for _ in range(2):
        expected, loss = unsplit(expected, tokens)
        actual, own = pipelined(actual, tokens)
        np.testing.assert_allclose(own, loss, rtol=1e-5)
    for want, got in zip(jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * float(np.max(np.abs(want))))
    program = pipelined.lower(actual, tokens).data()
    wide = [step for step in program.body if isinstance(step, Transfer)
            and program.types[step.operand].shape == (cfg.vocab, cfg.width)]
    assert len(wide) == (1 if options else 0)  # the embedding's gradient crosses in every micro-batch, or once

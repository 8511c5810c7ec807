"""Tests that `make test` leaves out and `make heavy`, `.ci/run` and `make nightly` run.

They are heavy by what they check: hundreds of random programs, several processes, whole pages and sites, compilations
for GPUs. Of each kind something stays in `make test`; the column ``stays`` says what.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HeavyTests:
    """Tests of one function or file.

    Attributes:
      file: path below ``tests``.
      stays: what `make test` runs of the same kind.
      test: name of the function; nothing for all of the file.
      only: beginnings of the parameters that are heavy; nothing for all.
      but: beginnings of the parameters that are not.
    """

    file: str
    stays: str
    test: str = ""
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def holds(self, test: str, parameter: str) -> bool:
        """Whether a test of the file, by its name and the text of its parameters, is one of these."""
        if self.test and test != self.test:
            return False
        return not parameter.startswith(self.but or "\0") and (not self.only or parameter.startswith(self.only))


OTHERS = "other parameters"
_DRIVER = "unit/pipelines/runtime/test_driver_processes.py"
_PROCESSES = "e2e/test_processes.py"
_PAGES = ("README.md", *(f"docs/{name}.md" for name in (
    "against-xla", "audit", "coming-from", "comm-shift", "comparison", "cost-model", "deferred-reductions", "editors",
    "gallery", "index", "my-step-communicates-too-much", "overlap", "partial-state", "pipeline-programs", "plans",
    "proving", "quick-start", "resharding", "rounding", "rules", "schedules", "sequence-parallel", "shard-update",
    "timeline", "trainers", "viewer", "write-a-pass", "write-a-rule")))
HEAVY = (
    # pages and the site
    HeavyTests("docs/test_pages.py", "all other pages", "test_what_the_page_shows_is_what_happens", _PAGES),
    HeavyTests("docs/test_site.py", "links of the pages (test_links.py), their blocks (test_pages.py)"),
    HeavyTests("unit/viewer/test_page_checks.py", "other tests of the file", "test_the_report_of_exec_can_be_read"),
    HeavyTests("unit/viewer/test_viewer_browser.py", "unit/viewer/test_page_checks.py"),
    # golden files, with processes for each command
    HeavyTests("test_lit.py", "test_golden_file_in_process, which compares the same text", "test_golden_file",
               but=("cli/unknown_names.test",)),
    # random programs and mutants
    HeavyTests("oracle/validator/test_validator.py", OTHERS, "test_mutants", but=("few",)),
    HeavyTests("oracle/validator/test_validator.py", OTHERS, "test_random_programs", but=("0",)),
    HeavyTests("oracle/at_random/test_random_programs.py", OTHERS, "test_seeded_programs", but=("0", "1]")),
    HeavyTests("unit/pipelines/decorator/test_split_stages_random.py", OTHERS, "test_random_models", but=("0", "1")),
    HeavyTests("unit/pipelines/decorator/test_random_optimizers.py", OTHERS, "test_random_optimizers", but=("0", "1]")),
    HeavyTests("oracle/test_rounding.py", OTHERS, "test_random_programs_stay_within_their_bounds", but=("0",)),
    HeavyTests("oracle/test_rounding.py", "random programs", "test_golden_programs_stay_within_their_bounds"),
    HeavyTests("oracle/test_comm_golden.py", OTHERS, "test_twice_is_once", only=("passes/comm-shift",)),
    HeavyTests("oracle/test_golden_values.py", "test_same_values", "test_same_values_of_other_inputs"),
    HeavyTests("oracle/test_golden_values.py", OTHERS, "test_same_values",
               only=("passes/reshard-to-broadcast/stack-in-a-loop-of", "passes/reshard-to-broadcast/large-stack")),
    HeavyTests("unit/cli/test_hostile_inputs.py", "each reader's own tests of damaged inputs",
               "test_a_few_damaged_inputs_of_every_form"),
    HeavyTests("unit/jaxbridge/decorator/test_partial_state_random.py", OTHERS, "test_random_steps", but=("few",)),
    # proofs by the solver
    HeavyTests("unit/checks/prove/test_mutated_proofs.py", "test_prove.py, test_wrong_rewrites.py",
               "test_equations_that_hold_for_more_kinds_are_proved"),
    HeavyTests("unit/checks/prove/test_mutated_proofs.py", "test_a_rule_without_a_condition_is_not_proved",
               "test_conditions_that_say_nothing_about_values_are_not_needed"),
    HeavyTests("unit/checks/prove/test_mutated_proofs.py", "test_a_fact_that_claims_more_is_not_proved",
               "test_a_rule_with_any_other_float_class"),
    HeavyTests("unit/checks/prove/test_mutated_proofs.py", OTHERS, "test_a_rule_without_a_condition_is_not_proved",
               only=("permute-", "slice-of-", "carry-inside-")),
    HeavyTests("unit/checks/prove/test_prove.py",
               "test_kept_verdicts_are_of_the_texts_as_they_are, test_mutated_proofs.py",
               "test_shipped_rules_are_proved_and_the_kept_verdicts_are_fresh"),
    HeavyTests("unit/checks/prove/test_wrong_rewrites.py", "other tests of the file",
               "test_the_same_way_of_writing_is_proved_unchanged"),
    # several processes
    HeavyTests("unit/jaxbridge/processes/test_checkpoints.py", "test_saved_killed_restored_and_continued",
               "test_every_process_fetches_the_loss_and_one_a_parameter"),
    HeavyTests("unit/jaxbridge/processes/test_checkpoints.py",
               "test_every_process_fetches_the_loss_and_one_a_parameter",
               "test_unequal_stages_and_a_state_that_goes_through_global_arrays"),
    HeavyTests(_DRIVER, OTHERS, "test_one_that_holds_up_the_others_is_named_before_they_end", but=("stopped",)),
    HeavyTests(_DRIVER, OTHERS, "test_one_that_is_gone_ends_all_and_is_named", but=("killed-1",)),
    HeavyTests(_DRIVER, "test_processes_compute_the_step_of_one_device", "test_hosts_of_an_emulated_cluster"),
    HeavyTests(_PROCESSES, OTHERS, "test_a_process_that_the_others_wait_for_is_named_within_ten_seconds",
               but=("killed",)),
    HeavyTests(_PROCESSES, OTHERS, "test_those_that_wait_for_a_dead_process_end_however_they_wait", but=("method",)),
    HeavyTests(_PROCESSES, OTHERS, "test_when_one_process_differs_all_run_the_original_and_say_why", but=("fails",)),
    HeavyTests("e2e/test_shared_plans.py", OTHERS, "test_the_policy_of_the_first_holds_for_all", but=("replan",)),
    *(HeavyTests("e2e/test_exec.py", "unit/jaxbridge/processes/test_agreement.py", test)
      for test in ("test_processes_rewrite_together", "test_rewriting_on_one_process_only")),
    *(HeavyTests("e2e/test_exec.py", "other tests of the file", test) for test in (
        "test_plans_are_kept_and_replayed", "test_the_hook_reaches_children_and_modules",
        "test_reports_as_text_and_as_a_page")),
    HeavyTests("unit/pipelines/reshard/test_reshard_jax.py", "other tests of the file", "test_trees_are_bit_exact"),
    HeavyTests("unit/pipelines/reshard/test_reshard_jax.py", "other tests of the file",
               "test_memory_is_source_and_destination_and_one_chunk"),
    HeavyTests("e2e/test_evidence.py", "tests of the decorator and of checkpoints",
               "test_random_state_is_the_same_with_and_without"),
    HeavyTests("e2e/test_evidence.py", "tests of the decorator and of checkpoints", "test_checkpoints_cross_over"),
    HeavyTests("e2e/test_evidence.py", "tests of the decorator and of checkpoints",
               "test_one_command_runs_the_scripts_and_says_which_failed"),
    HeavyTests("e2e/test_rewriter_faults.py", "unit/jaxbridge/processes/test_agreement.py",
               "test_a_rewriter_that_raises_on_the_process_that_decides"),
    HeavyTests("unit/tools/test_same_output.py", OTHERS, "test_all_outputs_are_those_that_were_kept"),
    HeavyTests("unit/passes/test_same_in_every_process.py", "golden files", "test_rewritten_program_is_the_same"),
    *(HeavyTests("unit/jaxbridge/processes/test_agreement.py", OTHERS, test, but=("0",)) for test in (
        "test_one_that_takes_too_long_to_rewrite", "test_one_never_comes", "test_one_that_comes_late_is_waited_for",
        "test_one_that_comes_too_late_follows")),
    # whole steps, and what is compiled for described GPUs
    HeavyTests("unit/cost/test_kernel_model.py", "unit/cost/test_kernel_clock.py"),
    HeavyTests("unit/cost/test_gpu_day.py", "the parts and the report of the same script",
               "test_a_dry_run_fills_every_part"),
    HeavyTests("unit/cost/test_one_model.py", "the same step by the model on StableHLO",
               "test_a_gpt_step_takes_as_long_by_its_schedule"),
    HeavyTests("unit/jaxbridge/decorator/test_partial_state.py", OTHERS,
               "test_calls_agree_and_only_those_that_update_reduce", but=("a branch", "MultiSteps, adamw]")),
    HeavyTests("unit/jaxbridge/decorator/test_sharded_updates.py", OTHERS,
               "test_ten_calls_agree_and_arguments_shrink", only=("AdamW",)),
    *(HeavyTests("unit/jaxbridge/decorator/test_sharded_updates.py", "test_ten_calls_agree_and_arguments_shrink", test)
      for test in ("test_ten_calls_are_within_the_rounding_bound",
                   "test_for_gpus_arguments_are_as_computed_and_no_more_is_sent")),
    HeavyTests("e2e/test_demo.py", "test_the_gpt_step_reduces_each_gradient_once of e2e/test_examples.py"),
    HeavyTests("e2e/test_install.py", "unit/packaging/test_packaging.py", "test_all_ways_install_the_same"),
    HeavyTests("e2e/test_examples.py", "unit/jaxbridge/xla/test_partition.py",
               "test_auto_sharded_gpt_keeps_its_values_and_communicates_no_more"),
    HeavyTests("e2e/test_examples.py", "compilations for GPUs of unit/jaxbridge",
               "test_the_step_for_eight_described_h200s_reduces_each_gradient_once"),
    HeavyTests("e2e/test_trainers.py", "test_example of e2e/test_examples.py",
               "test_accumulation_inside_the_step_reduces_once"),
    HeavyTests("e2e/test_pipeline_example.py", "unit/pipelines/decorator", "test_pipeline_gpt"),
    HeavyTests("unit/pipelines/decorator/test_split_stages.py", OTHERS,
               "test_tied_embeddings_get_one_accumulator_a_stage", but=("bfloat16",)),
    HeavyTests("unit/pipelines/decorator/test_stacked_layers.py", OTHERS, "test_each_stage_has_its_layers",
               but=("1f1b",)),
    HeavyTests("unit/pipelines/decorator/test_stacked_layers.py", OTHERS,
               "test_parts_that_are_not_the_shards_of_one_array", but=("stages0", "4-sizes2")),
    HeavyTests("unit/pipelines/decorator/test_stacked_layers.py", OTHERS, "test_scans_that_are_unrolled",
               but=("kept-8-2-stages1", "kept-7-3-stages4", "checkpoint-7-2", "checkpoint-8-True")),
    HeavyTests("unit/jaxbridge/frameworks/test_lost_updates.py", "other tests of the file",
               "test_the_equinox_route_that_the_error_names_trains_as_filter_jit"),
    HeavyTests("unit/jaxbridge/frameworks/test_lost_updates.py", "other tests of the file",
               "test_the_route_that_the_error_names_trains_as_nnx_jit"),
    HeavyTests("unit/pipelines/decorator/test_auto_stages.py", "other tests of the file",
               "test_no_hand_cut_is_five_percent_faster"),
    HeavyTests("unit/pipelines/decorator/test_auto_stages.py", "other tests of the file",
               "test_values_are_those_of_the_unsplit_step"),
    HeavyTests("unit/pipelines/decorator/test_simulated_memory.py", OTHERS,
               "test_simulated_peaks_are_what_the_driver_holds", but=("unet-zb", "unet-gpipe")),
    HeavyTests("unit/jaxbridge/test_sequence_parallel_step.py",
               "values by the oracle in unit/passes/test_sequence_parallel.py", "test_loss_and_parameters_stay"),
    HeavyTests("unit/jaxbridge/test_large_models.py", "other tests of the file",
               "test_temporaries_may_grow_by_the_budget_and_by_no_more"),
    HeavyTests("unit/jaxbridge/decorator/test_sharded_parameters.py", OTHERS,
               "test_parameters_are_gathered_once_within_a_budget", but=("by_hand",)),
    HeavyTests("unit/pipelines/decorator/test_pipeline_search.py", "other tests of the file",
               "test_each_line_of_python_gives_the_time_it_stands_for"),
    HeavyTests("unit/tune/test_tune_resume.py", "limits of test_tune_command.py, progress of test_progress.py",
               "test_after_a_signal"),
    HeavyTests("unit/tune/test_tune_command.py", "other tests of unit/tune",
               "test_a_step_is_tuned_and_the_next_run_compiles_nothing"),
    HeavyTests("unit/cost/test_cost_matrix_gpt.py", OTHERS, "test_compiled_fragments_agree_exactly"),
    HeavyTests("unit/pipelines/test_partition_programs.py", OTHERS, "test_real_steps_reduce_each_gradient_once",
               but=("gpt_unequal_meshes",)),
    HeavyTests("unit/pipelines/runtime/test_driver.py", OTHERS,
               "test_every_schedule_computes_the_step_of_one_device", but=("mesh_of1", "mesh_of4", "mesh_of7")),
    HeavyTests("unit/pipelines/decorator/test_pipeline.py", OTHERS, "test_results_are_those_of_the_unsplit_step",
               but=("None-1f1b",)),
    HeavyTests("e2e/test_examples.py", OTHERS, "test_example",
               only=("equinox_mlp", "flax_nnx", "optax_accumulate", "optax_multisteps")),
    HeavyTests("unit/pipelines/runtime/test_run.py", "other tests of the file",
               "test_a_schedule_with_and_without_comm_shift"),
    HeavyTests("unit/audit/test_audit_command.py", "other tests of the file",
               "test_the_passes_are_tried_on_the_program_of_a_dump"),
    HeavyTests("unit/pipelines/reshard/test_reshard_jax.py", "test_three_processes_reshard_with_gloo",
               "test_all_strategies_are_bit_exact_on_disjoint_and_overlapping_meshes"),
    HeavyTests("unit/pipelines/reshard/test_reshard_plan.py", OTHERS, "test_auto_is_never_above_a_named_strategy",
               but=("-,---,-", "host,gpu--,gpu")),
    HeavyTests("unit/checks/reference/test_rule_instance_ops.py", OTHERS, "test_a_sum_and_a_linear_op_change_places",
               but=("slice", "transpose-permutation = $p")),
    # more of what others show: further blocks of random programs, further models, further ways to fail
    *(HeavyTests(f"oracle/at_random/{file}.py", OTHERS, test, only=("2", "3")) for file, test in (
        ("test_random_calls", "test_random_calls"), ("test_random_counters", "test_random_counters"),
        ("test_random_layers", "test_random_layers"), ("test_random_places", "test_random_places"),
        ("test_random_scopes", "test_random_scopes"))),
    *(HeavyTests(f"oracle/at_random/{file}.py", OTHERS, test, only=("1",)) for file, test in (
        ("test_random_layers", "test_counts_at_run_time"), ("test_random_places", "test_random_tables"),
        ("test_random_ranges", "test_random_ranges"))),
    HeavyTests("oracle/at_random/test_random_trips.py", "test_random_counters.py, test_equal_trips.py",
               "test_random_trips"),
    HeavyTests("oracle/at_random/test_fusion_random.py", OTHERS, "test_values_stay", only=("2", "3")),
    HeavyTests("oracle/test_never_more.py", OTHERS, "test_programs_that_depend_on_the_path", but=("0", "1")),
    HeavyTests("oracle/test_never_more.py", OTHERS, "test_values_of_programs_that_depend_on_the_path",
               but=("comm-shift]",)),
    HeavyTests("oracle/test_rounding.py", "test_random_programs_stay_within_their_bounds",
               "test_random_layers_stay_within_their_bounds"),
    *(HeavyTests("e2e/test_random_jax.py", OTHERS, test, but=("0",)) for test in (
        "test_random_steps", "test_infinities_and_not_a_numbers", "test_random_callbacks", "test_random_updates",
        "test_random_blocks")),
    HeavyTests("unit/tune/test_tune_resume.py", "limits of test_tune_command.py, progress of test_progress.py",
               "test_after_its_time_limit"),
    HeavyTests("unit/tune/test_tune_resume.py", "limits of test_tune_command.py, progress of test_progress.py",
               "test_on_a_terminal_it_shows_what_is_left"),
    HeavyTests("unit/tune/test_tune_plan.py", "plans of unit/lockfile, searches of test_tune_command.py"),
    HeavyTests("unit/tools/test_positional.py", "make lint, which make test runs", "test_the_project"),
    HeavyTests("unit/tools/test_op_lists.py", "make lint, which make test runs", "test_the_project"),
    HeavyTests("unit/cost/test_cost_commands.py", OTHERS, "test_pictures", only=("svg",)),
    HeavyTests("unit/jaxbridge/baseline/test_constraint_advice.py", "other tests of the file",
               "test_lint_prints_them"),
    HeavyTests("unit/tune/test_tune_command.py", OTHERS, "test_a_full_disk_leaves_nothing_partial",
               only=("--plan", "--plot")),
    HeavyTests("e2e/test_exec.py", OTHERS, "test_on_a_terminal_one_line_says_what_was_rewritten",
               only=("report.html",)),
    HeavyTests("unit/audit/test_audit_command.py", "lint of texts in the same file and in unit/cli/test_lint.py",
               "test_lint_reads_the_program_of_a_dump"),
    HeavyTests("unit/timeline/test_timeline_command.py", "other tests of the file, on schedules as text",
               "test_a_step_is_compiled_and_simulated"),
    HeavyTests("unit/timeline/test_timeline_command.py", "other tests of the file, on schedules as text",
               "test_a_second_simulator_agrees_on_a_compiled_step"),
    HeavyTests("unit/jaxbridge/xla/test_partition.py", OTHERS,
               "test_values_signature_and_memory_stay_and_collectives_come_out", only=("dp_fsdp_tp",)),
    HeavyTests("unit/cost/test_stacks.py", "other tests of the file", "test_the_fit_recovers_constants"),
    *(HeavyTests("unit/jaxbridge/baseline/test_flag_sets.py", "other tests of the file", test) for test in (
        "test_every_set_compiles_for_described_gpus", "test_a_set_shortens_the_step_of_a_scanned_gpt")),
    HeavyTests("unit/jaxbridge/hook/test_scoped.py", OTHERS, "test_filter_jit_trains_as_without", only=("none",)),
    HeavyTests("unit/jaxbridge/decorator/test_partial_state.py", OTHERS, "test_a_step_with_its_reductions_written_out",
               only=("MultiSteps",)),
    HeavyTests("unit/jaxbridge/decorator/test_sharded_updates.py", "unit/jaxbridge/decorator/test_partial_state.py",
               "test_checkpoints_convert_both_ways"),
    HeavyTests("unit/jaxbridge/decorator/test_sharded_updates.py", "unit/jaxbridge/decorator/test_partial_state.py",
               "test_orbax_restores_into_either_placement"),
    HeavyTests("unit/jaxbridge/decorator/test_remarks.py", "other tests of the file",
               "test_equinox_under_patch_jit_and_on_the_page"),
    HeavyTests("unit/jaxbridge/choose/test_reported_savings.py", OTHERS,
               "test_what_is_reported_is_what_two_compilations_show", only=("nnx_like",)),
    HeavyTests("unit/jaxbridge/test_large_models.py", OTHERS,
               "test_gradients_cross_the_replicas_once_a_step_in_no_memory", but=("h200",)),
)


def is_heavy(file: str, name: str) -> bool:
    """Whether a test is one of ``HEAVY``.

    Args:
      file: path below ``tests``, with ``/``.
      name: of the test, with its parameters in brackets.

    Example:
      >>> is_heavy("docs/test_site.py", "test_every_link_leads_somewhere")
      True
      >>> is_heavy("docs/test_pages.py", "test_what_the_page_shows_is_what_happens[docs/decorator.md]")
      False
    """
    test, _, parameter = name.partition("[")
    return any(each.holds(test, parameter) for each in _BY_FILE.get(file, ()))


_BY_FILE = {file: [each for each in HEAVY if each.file == file] for file in {each.file for each in HEAVY}}

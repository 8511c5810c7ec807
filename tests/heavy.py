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
HEAVY = (
    # pages and the site
    HeavyTests("docs/test_pages.py", OTHERS, "test_what_the_page_shows_is_what_happens",
               but=("docs/faq.md",)),
    HeavyTests("docs/test_site.py", "links of the pages (test_links.py), their blocks (test_pages.py)"),
    HeavyTests("unit/viewer/test_page_checks.py", "data and structure of pages in test_viewer_data.py"),
    HeavyTests("unit/viewer/test_viewer_browser.py", "data and structure of pages in test_viewer_data.py"),
    # golden files, with processes for each command
    HeavyTests("test_lit.py", "test_golden_file_in_process, which compares the same text", "test_golden_file",
               but=("cli/unknown_names.test",)),
    # random programs and mutants
    HeavyTests("oracle/validator/test_validator.py", OTHERS, "test_mutants", but=("few",)),
    HeavyTests("oracle/validator/test_validator.py", "other tests of the file", "test_random_programs"),
    HeavyTests("oracle/at_random/test_random_programs.py", OTHERS, "test_seeded_programs", but=("0",)),
    HeavyTests("unit/pipelines/decorator/test_split_stages_random.py", OTHERS, "test_random_models", but=("0", "1")),
    HeavyTests("unit/pipelines/decorator/test_host_calls.py", OTHERS, "test_callbacks_are_given_what_jit_gives_them",
               but=("1-stages", "2-after")),
    HeavyTests("unit/pipelines/decorator/test_second_passes.py", OTHERS,
               "test_gradients_of_one_forward_and_one_backward", but=("surgery", "penalty_of_the_head")),
    HeavyTests("unit/pipelines/decorator/test_second_passes.py", "test_two_loops_are_two_steps",
               "test_passes_as_steps_of_their_own"),
    HeavyTests("unit/pipelines/decorator/test_random_optimizers.py", OTHERS, "test_random_optimizers", but=("0", "1]")),
    HeavyTests("oracle/validator/test_hlo_mutants.py", OTHERS, "test_no_changed_program_is_proved_wrongly",
               but=("code_motion-stablehlo", "nested_slices-hlo")),
    HeavyTests("oracle/validator/test_wrong_pairs.py", OTHERS, "test_wrong_pairs", but=("0",)),
    HeavyTests("oracle/at_random/test_random_programs.py", "test_seeded_programs", "test_drawn_programs"),
    HeavyTests("oracle/test_twice.py", OTHERS, "test_golden_files", only=("time", "rotate", "peel for")),
    HeavyTests("oracle/test_twice.py", OTHERS, "test_random_loops", only=("rotate outer", "peel for")),
    HeavyTests("oracle/test_twice.py", OTHERS, "test_comm_shift_keeps_them", but=("sink",)),
    HeavyTests("oracle/test_rounding.py", OTHERS, "test_bounds_of_another_size_are_found", but=("0.5",)),
    HeavyTests("oracle/test_rounding.py", OTHERS, "test_random_programs_stay_within_their_bounds", but=("0",)),
    HeavyTests("oracle/test_rounding.py", "random programs", "test_golden_programs_stay_within_their_bounds"),
    HeavyTests("oracle/test_comm_golden.py", OTHERS, "test_twice_is_once", only=("passes/comm-shift", "rules/")),
    HeavyTests("oracle/test_golden_values.py", "test_same_values", "test_same_values_of_other_inputs"),
    HeavyTests("oracle/test_golden_values.py", OTHERS, "test_same_values",
               only=("passes/reshard-to-broadcast/stack-in-a-loop", "passes/reshard-to-broadcast/large-stack")),
    HeavyTests("unit/cli/test_hostile_inputs.py", "each reader's own tests of damaged inputs",
               "test_a_few_damaged_inputs_of_every_form"),
    HeavyTests("unit/jaxbridge/decorator/test_partial_state_random.py", "test_partial_state.py"),
    # proofs by the solver
    HeavyTests("unit/checks/prove/test_mutated_proofs.py", "test_prove.py, test_wrong_rewrites.py",
               "test_equations_that_hold_for_more_kinds_are_proved"),
    HeavyTests("unit/checks/prove/test_mutated_proofs.py", "test_a_rule_without_a_condition_is_not_proved",
               "test_conditions_that_say_nothing_about_values_are_not_needed"),
    HeavyTests("unit/checks/prove/test_mutated_proofs.py", "test_a_fact_that_claims_more_is_not_proved",
               "test_a_rule_with_any_other_float_class"),
    HeavyTests("unit/checks/prove/test_mutated_proofs.py", OTHERS, "test_a_rule_without_a_condition_is_not_proved",
               only=("permute-", "slice-of-", "carry-inside-", "maximum-", "minimum-", "and-", "or-", "subtract-",
                     "multiply-", "all-to-all-and-back", "all-gather-of-", "all-reduce-of-all-reduce")),
    HeavyTests("unit/checks/prove/test_mutated_proofs.py", OTHERS, "test_a_fact_that_claims_more_is_not_proved",
               only=("reduce-max", "reduce-min", "reduce-and", "reduce-or", "reduce-sum-from", "dot-general-right",
                     "scatter-m", "convert-extremum", "convolution-kernel", "maximum", "minimum")),
    HeavyTests("unit/checks/prove/test_wrong_rewrites.py", OTHERS, "test_a_wrong_rewrite_is_not_proved",
               only=("slice-of-all-", "all-gather-of-reduce-scatter", "gather-before-widening")),
    HeavyTests("unit/ops/test_dims.py", OTHERS, "test_a_wrong_row_is_seen",
               but=("if dimension in ints", "return DimFactor", "if repeats_whole", "sums = count", "same = other")),
    *(HeavyTests("unit/ops/test_dims.py", OTHERS, test, only=("reshape [2", "reshape [4", "reshape [8"))
      for test in ("test_an_op_on_parts_computes_parts", "test_shardy_says_the_same")),
    HeavyTests("oracle/test_conditions.py", "test_condition_is_needed for each, others here",
               "test_validator_notices",
               but=("a device's id varies", "members keep", "what a loop", "a reshape", "which branch")),
    HeavyTests("oracle/test_mutations.py", OTHERS, "test_condition_is_needed",
               only=("convolution-", "dot-general-right", "scatter-m", "maximum-of", "minimum-of", "or-of",
                     "triangular-solve", "clamp uniform(%low)")),
    HeavyTests("unit/passes/all_reduce_fusion/test_plan.py", OTHERS, "test_each_part_of_the_bound_counts",
               but=(" - reading", "- reading")),
    HeavyTests("unit/passes/test_tokens_to_experts.py", OTHERS, "test_auto_keeps_it_and_another_process_repeats_it"),
    HeavyTests("unit/passes/test_interleave_halves_proof.py", OTHERS, "test_mistakes_are_not_proved",
               only=("a yield", "another", "one operand", "one start", "one yield", "yields")),
    HeavyTests("unit/checks/prove/test_prove.py",
               "test_kept_verdicts_are_of_the_texts_as_they_are, test_mutated_proofs.py",
               "test_shipped_rules_are_proved_and_the_kept_verdicts_are_fresh"),
    HeavyTests("unit/checks/prove/test_prove.py", "other tests of the file", "test_command_with_counterexamples"),
    *(HeavyTests("unit/rules/test_unexecuted_rules.py", "test_rule_lists.py and other tests of the file", test)
      for test in ("test_rules_check_fails_where_nothing_is_known", "test_a_rule_that_is_proved_needs_no_execution")),
    HeavyTests("unit/checks/reference/test_rule_check.py", OTHERS,
               "test_shipped_rules_keep_values_on_generated_programs", but=("add-of-", "slice-of-", "permute-of-")),
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
    *(HeavyTests(_PROCESSES, "other tests of the file, unit/jaxbridge/processes/test_agreement.py", test) for test in (
        "test_those_that_wait_for_a_dead_process_end_however_they_wait", "test_all_stop_where_the_user_wants_errors",
        "test_processes_of_another_program_run_the_original")),
    HeavyTests(_PROCESSES, OTHERS, "test_when_one_process_differs_all_run_the_original_and_say_why", but=("fails",)),
    *(HeavyTests("e2e/test_shared_plans.py", "unit/jaxbridge/processes/test_shared_plan.py",
                 test) for test in (
        "test_all_replay_the_plan_of_the_first_whatever_lies_beside_them", "test_the_policy_of_the_first_holds_for_all",
        "test_a_process_that_the_plan_does_not_fit_makes_all_run_the_original")),
    *(HeavyTests("e2e/test_exec.py", "unit/jaxbridge/processes/test_agreement.py", test)
      for test in ("test_processes_rewrite_together", "test_rewriting_on_one_process_only")),
    *(HeavyTests("e2e/test_exec.py", "other tests of the file", test) for test in (
        "test_plans_are_kept_and_replayed", "test_the_hook_reaches_children_and_modules",
        "test_reports_as_text_and_as_a_page", "test_only_what_matches", "test_what_is_not_captured_is_said",
        "test_a_program_that_catches_everything_ends_all_the_same")),
    HeavyTests("unit/pipelines/reshard/test_reshard_jax.py", "other tests of the file", "test_trees_are_bit_exact"),
    HeavyTests("e2e/test_evidence.py", "tests of the decorator and of checkpoints",
               "test_random_state_is_the_same_with_and_without"),
    *(HeavyTests("e2e/test_evidence.py", "tests of the decorator and of checkpoints", test) for test in (
        "test_a_spike_is_counted", "test_outputs_and_plans_do_not_depend_on_the_process")),
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
               "test_calls_agree_and_only_those_that_update_reduce", but=("a branch",)),
    HeavyTests("unit/jaxbridge/decorator/test_sharded_updates.py", OTHERS,
               "test_ten_calls_agree_and_arguments_shrink", only=("AdamW",)),
    *(HeavyTests("unit/jaxbridge/decorator/test_sharded_updates.py", "test_ten_calls_agree_and_arguments_shrink", test)
      for test in ("test_ten_calls_are_within_the_rounding_bound",
                   "test_for_gpus_arguments_are_as_computed_and_no_more_is_sent")),
    HeavyTests("e2e/test_demo.py", "test_example of e2e/test_examples.py"),
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
    HeavyTests("unit/pipelines/decorator/test_simulated_memory.py", OTHERS,
               "test_simulated_peaks_are_what_the_driver_holds", but=("unet-zb", "unet-gpipe")),
    HeavyTests("unit/jaxbridge/test_sequence_parallel_step.py",
               "values by the oracle in unit/passes/test_sequence_parallel.py", "test_loss_and_parameters_stay"),
    HeavyTests("unit/jaxbridge/decorator/test_sharded_parameters.py", OTHERS,
               "test_parameters_are_gathered_once_within_a_budget", but=("by_hand",)),
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
               only=("equinox_mlp", "flax_nnx", "optax_multisteps")),
    HeavyTests("unit/pipelines/reshard/test_reshard_jax.py", "test_three_processes_reshard_with_gloo",
               "test_all_strategies_are_bit_exact_on_disjoint_and_overlapping_meshes"),
    HeavyTests("unit/pipelines/reshard/test_reshard_plan.py", OTHERS, "test_auto_is_never_above_a_named_strategy",
               but=("-,---,-", "host,gpu--,gpu")),
    # more of what others show: further blocks of random programs, further models, further ways to fail
    *(HeavyTests(f"oracle/at_random/{file}.py", OTHERS, test, but=("0",)) for file, test in (
        ("test_random_calls", "test_random_calls"), ("test_random_counters", "test_random_counters"),
        ("test_random_layers", "test_random_layers"), ("test_random_places", "test_random_places"),
        ("test_random_scopes", "test_random_scopes"))),
    HeavyTests("oracle/at_random/test_random_ranges.py", OTHERS, "test_random_ranges", only=("1",)),
    HeavyTests("oracle/at_random/test_random_layers.py", "test_random_layers", "test_counts_at_run_time"),
    HeavyTests("oracle/at_random/test_random_places.py", "test_random_places", "test_random_tables"),
    HeavyTests("oracle/at_random/test_random_trips.py", "test_random_counters.py, test_equal_trips.py",
               "test_random_trips"),
    HeavyTests("oracle/at_random/test_fusion_random.py", OTHERS, "test_values_stay", only=("1", "2", "3")),
    HeavyTests("oracle/test_never_more.py", OTHERS, "test_programs_that_depend_on_the_path", but=("0",)),
    HeavyTests("oracle/test_never_more.py", OTHERS, "test_values_of_programs_that_depend_on_the_path",
               but=("comm-shift]",)),
    HeavyTests("oracle/test_rounding.py", "test_random_programs_stay_within_their_bounds",
               "test_random_layers_stay_within_their_bounds"),
    *(HeavyTests("e2e/test_random_jax.py", OTHERS, test, but=("0",)) for test in (
        "test_random_steps", "test_infinities_and_not_a_numbers", "test_random_blocks")),
    HeavyTests("e2e/test_random_jax.py", "test_what_follows_the_reduction of test_features.py",
               "test_random_callbacks"),
    HeavyTests("e2e/test_random_jax.py", "unit/jaxbridge/decorator/test_sharded_updates.py", "test_random_updates"),
    HeavyTests("unit/tune/test_tune_resume.py", "limits of test_tune_command.py, progress of test_progress.py",
               "test_after_its_time_limit"),
    HeavyTests("unit/tune/test_tune_resume.py", "limits of test_tune_command.py, progress of test_progress.py",
               "test_on_a_terminal_it_shows_what_is_left"),
    HeavyTests("unit/tune/test_tune_plan.py", "plans of unit/lockfile, searches of test_tune_command.py"),
    HeavyTests("unit/tools/test_positional.py", "make lint, which make test runs", "test_the_project"),
    HeavyTests("unit/tools/test_op_lists.py", "make lint, which make test runs", "test_the_project"),
    HeavyTests("unit/cost/test_cost_commands.py", "other tests of the file", "test_pictures"),
    *(HeavyTests("unit/jaxbridge/baseline/test_constraint_advice.py", "other tests of the file", test) for test in (
        "test_lint_prints_them", "test_small_savings_are_not_named", "test_a_step_with_constraints_lacks_none",
        "test_a_partitioned_step_is_left_alone")),
    *(HeavyTests("unit/tune/test_tune_command.py", "other tests of the file", test) for test in (
        "test_a_full_disk_leaves_nothing_partial", "test_nothing_fits_in_no_memory")),
    HeavyTests("unit/tune/test_tune_process.py", "test_what_cannot_be_tuned of test_tune_command.py",
               "test_what_cannot_be_tuned_is_refused_by_the_process"),
    HeavyTests("e2e/test_exec.py", "test_a_program_is_rewritten_and_trains_as_before",
               "test_on_a_terminal_one_line_says_what_was_rewritten"),
    HeavyTests("unit/audit/test_audit_command.py", "lint of texts in the same file and in unit/cli/test_lint.py",
               "test_lint_reads_the_program_of_a_dump"),
    HeavyTests("unit/timeline/test_timeline_command.py", "other tests of the file, on schedules as text",
               "test_a_step_is_compiled_and_simulated"),
    HeavyTests("unit/timeline/test_timeline_command.py", "other tests of the file, on schedules as text",
               "test_a_second_simulator_agrees_on_a_compiled_step"),
    HeavyTests("unit/cost/test_stacks.py", "other tests of the file", "test_the_fit_recovers_constants"),
    *(HeavyTests("unit/jaxbridge/baseline/test_flag_sets.py", "other tests of the file", test) for test in (
        "test_every_set_compiles_for_described_gpus", "test_a_set_shortens_the_step_of_a_scanned_gpt")),
    HeavyTests("unit/jaxbridge/hook/test_scoped.py", "test_one_line_for_flax_and_equinox of test_patch_jit.py",
               "test_filter_jit_trains_as_without"),
    HeavyTests("unit/jaxbridge/decorator/test_partial_state.py", OTHERS, "test_a_step_with_its_reductions_written_out",
               only=("MultiSteps",)),
    HeavyTests("unit/jaxbridge/decorator/test_sharded_updates.py", "unit/jaxbridge/decorator/test_partial_state.py",
               "test_checkpoints_convert_both_ways"),
    HeavyTests("unit/jaxbridge/decorator/test_sharded_updates.py", "unit/jaxbridge/decorator/test_partial_state.py",
               "test_orbax_restores_into_either_placement"),
    HeavyTests("unit/jaxbridge/choose/test_reported_savings.py", "test_candidates.py, test_baseline_run.py",
               "test_what_is_reported_is_what_two_compilations_show"),
    HeavyTests("unit/jaxbridge/choose/test_baseline_run.py", OTHERS,
               "test_the_choice_is_that_of_one_compilation_after_the_other",
               but=("False-False-comm-shift-gpu", "False-True-passes2-cpu")),
    HeavyTests("unit/jaxbridge/choose/test_candidates.py", OTHERS, "test_compiled_keeps_no_longer_step",
               only=("0.5-False",)),
    HeavyTests("unit/jaxbridge/decorator/test_sharded_parameters.py", "other tests of the file",
               "test_with_a_budget_reduce_scatters_are_made_first_and_scattered_once"),
    HeavyTests("unit/jaxbridge/xla/test_unscheduled_hlo.py", "test_it_compiles_to_what_its_stablehlo_compiles_to",
               "test_commands_that_compile_take_it"),
    *(HeavyTests("unit/jaxbridge/validate_xla/test_validate_xla.py", OTHERS, test) for test in (
        "test_a_step_is_compiled_and_its_passes_proved", "test_a_moved_collective_and_the_source_line_are_shown")),
    *(HeavyTests("unit/timeline/test_timeline_command.py", "other tests of the file, and of schedules as text", test)
      for test in ("test_trip_counts_that_xla_does_not_state_are_recovered",
                   "test_the_table_names_line_and_parameter")),
    HeavyTests("oracle/validator/test_validator_steps.py", OTHERS, "test_sharded_parameters", only=("all",)),
    HeavyTests("oracle/validator/test_validator_steps.py", OTHERS, "test_gpt", but=("comm]",)),
    HeavyTests("unit/rules/test_partners.py", OTHERS, "test_the_index_finds_what_all_pairs_do",
               only=("1", "2", "7", "9")),
    HeavyTests("unit/rules/test_natives.py", OTHERS, "test_natives_are_loaded_from_the_module_on_the_command_line",
               but=("mine.py",)),
    HeavyTests("unit/passes/test_carried_fillings.py", OTHERS, "test_a_small_source_is_made_once_before_all_loops",
               but=("before both loops",)),
    HeavyTests("unit/passes/comm_shift/test_comm_shift_programs_random.py", OTHERS, "test_values_stay",
               only=("2", "3", "4", "5", "6", "7", "8", "9")),
    *(HeavyTests("unit/passes/all_reduce_fusion/test_plan.py", OTHERS, test, only=("3", "4", "5", "6", "7", "8", "9"))
      for test in ("test_bounds_are_kept_and_the_best_within_them_is_found", "test_bounds_lose_nothing",
                   "test_no_partition_of_the_ready_order_is_better")),
    HeavyTests("unit/jaxbridge/xla/test_partition.py", OTHERS,
               "test_values_signature_and_memory_stay_and_collectives_come_out", but=("dp]",)),
    HeavyTests("unit/jaxbridge/decorator/test_optimize.py", "unit/jaxbridge/validate_xla",
               "test_check_of_xlas_own_passes"),
    # our own tools, and commands that start processes
    *(HeavyTests("unit/ir/test_collective_table.py", "other tests of the file", test) for test in (
        "test_names_are_written_in_the_table_only", "test_lists_of_rows_have_a_reason")),
    HeavyTests("unit/cli/test_doctor.py", "other tests of the file", "test_this_environment_works"),
    HeavyTests("unit/tools/test_loops_end.py", "other tests of the file", "test_every_loop_says_why_it_ends"),
    HeavyTests("unit/tools/test_import_layers.py", "make lint", "test_the_diagram_is_in_the_architecture"),
    HeavyTests("oracle/executed/test_public_functions.py", "other tests of the file", "test_the_command_lines"),
    *(HeavyTests("unit/checks/reference/test_rule_check.py", "other tests of the file", test) for test in (
        "test_the_command_exits_with_3_for_a_wrong_rule",
        "test_a_rule_that_ends_the_interpreter_does_not_end_the_command")),
    HeavyTests("unit/tools/test_leaks_bench.py", "unit/jaxbridge/decorator/test_dropped_steps.py",
               "test_rounds_keep_nothing"),
    HeavyTests("unit/tools/test_moments_bench.py", "unit/pipelines/runtime/test_driver_processes.py",
               "test_who_waits_for_a_dead_peer_in_jaxs_own_exit_ends"),
    *(HeavyTests("unit/tools/test_update_lit_checks.py", "other tests of the file", test) for test in (
        "test_written_checks_hold", "test_files_that_are_left_alone")),
    *(HeavyTests("unit/testing/test_kit.py", "other tests of the file", test) for test in (
        "test_lit_runs_the_same_files", "test_checks_are_written_for_it")),
    HeavyTests("unit/cli/test_supervise.py", "other tests of the file", "test_closed_and_full_standard_streams"),
    HeavyTests("unit/cli/test_main.py", OTHERS, "test_a_file_that_mlir_crashes_on_is_one_line", but=("report",)),
    HeavyTests("unit/cli/test_progress.py", "other tests of the file", "test_opt_shows_its_passes_on_a_terminal"),
    HeavyTests("unit/passmanager/test_load_file.py", "other tests of the file", "test_exec_loads_it_in_the_program"),
    HeavyTests("unit/packaging/test_packaging.py", OTHERS, "test_comm_shift_runs_from", only=("wheel",)),
    HeavyTests("e2e/test_install.py", "unit/packaging/test_packaging.py",
               "test_the_source_distribution_holds_what_is_built_and_no_tests"),
    # further parameters of what takes longest for each
    HeavyTests("e2e/test_examples.py", "test_example, oracle/validator/test_validator_steps.py",
               "test_the_gpt_step_reduces_each_gradient_once"),
    HeavyTests("unit/checks/prove/test_prove.py", "test_a_rule_without_a_condition_is_not_proved",
               "test_same_collective_is_about_its_own_ops", only=("]",)),
    HeavyTests("unit/cli/test_extras.py", "test_one_line_names_the_extra",
               "test_the_kit_for_other_repositories_names_its_extra"),
    *(HeavyTests(file, "other tests of the file", test) for file, test in (
        ("unit/viewer/test_trace_writing.py", "test_compile_adds_memory_to_the_right_side"),
        ("unit/viewer/test_trace_writing.py", "test_the_decorator_writes_a_trace_for_each_signature"),
        ("unit/tune/test_memory_frontier.py", "test_a_picture"),
        ("unit/timeline/test_stream_tasks.py", "test_many_tasks_end"),
        ("docs/test_notebooks.py", "test_a_notebook_is_run_in_the_project_and_its_outputs_are_compared"),
        ("unit/viewer/test_viewer_data.py", "test_the_page_of_a_step_lists_collectives_by_what_they_expose"),
        ("unit/viewer/test_trace_writing.py", "test_the_simulator_writes_into_a_directory_or_one_file"),
        ("unit/viewer/test_viewer_data.py", "test_a_compiled_step_brings_its_simulated_times"),
        ("unit/passes/test_interleave_halves_proof.py", "test_random_programs_are_proved"),
        ("unit/checks/prove/test_wrong_rewrites.py", "test_the_same_way_of_writing_is_proved_unchanged"),
        ("unit/pipelines/reshard/test_reshard_jax.py", "test_memory_is_source_and_destination_and_one_chunk"),
        ("unit/jaxbridge/frameworks/test_lost_updates.py", "test_the_route_that_the_error_names_trains_as_nnx_jit"),
        ("unit/pipelines/decorator/test_auto_stages.py", "test_no_hand_cut_is_five_percent_faster"),
        ("unit/pipelines/decorator/test_auto_stages.py", "test_values_are_those_of_the_unsplit_step"),
        ("unit/jaxbridge/test_large_models.py", "test_temporaries_may_grow_by_the_budget_and_by_no_more"),
        ("unit/pipelines/decorator/test_pipeline_search.py", "test_each_line_of_python_gives_the_time_it_stands_for"),
        ("unit/pipelines/runtime/test_run.py", "test_a_schedule_with_and_without_comm_shift"),
        ("unit/audit/test_audit_command.py", "test_the_passes_are_tried_on_the_program_of_a_dump"),
        ("unit/audit/test_audit_command.py", "test_a_module_is_decided_as_opt_decides_it"),
        ("unit/jaxbridge/decorator/test_remarks.py", "test_equinox_under_patch_jit_and_on_the_page"),
        ("unit/jaxbridge/test_large_models.py", "test_gradients_cross_the_replicas_once_a_step_in_no_memory"),
        ("unit/passes/overlap/test_peeling_gain.py", "test_values_share_what_they_are_made_from"),
        ("unit/rules/test_rules_driver.py", "test_a_rule_that_makes_two_of_one_is_named_before_it_fills_the_memory"),
        ("unit/rules/test_rules_syntax.py", "test_a_file_cut_anywhere_parses_or_gives_one_sentence"),
        ("unit/checks/reference/test_programs.py", "test_check_in_a_process_of_its_own"),
        ("unit/rules/test_rule_lists.py", "test_a_rule_without_a_verdict_is_exit_code_one_and_one_line"),
        ("unit/cli/test_extras.py", "test_without_the_solver_the_plan_is_a_heuristics_and_says_so"),
        ("unit/util/test_releases.py", "test_what_touches_nothing_private_works_on_a_release_without_the_names"),
        ("unit/jaxbridge/decorator/test_features.py", "test_memory_kinds_and_layouts"),
        ("unit/jaxbridge/decorator/test_partial_state.py",
         "test_a_step_that_reads_its_sum_in_each_call_stays_and_says_so"),
        ("unit/jaxbridge/decorator/test_remarks.py", "test_linen_parameters_have_their_paths"),
        ("unit/jaxbridge/export/test_export.py", "test_equinox_names_are_paths_of_the_modules"),
        ("unit/jaxbridge/xla/test_partition.py", "test_unstated_output_shardings_are_those_xla_chooses"),
        ("unit/jaxbridge/hook/test_scoped.py", "test_a_method_and_a_partial_of_a_jitted_function"),
        ("unit/jaxbridge/hook/test_pmap.py", "test_lower_is_the_rewritten_lowering"),
        ("unit/jaxbridge/hook/test_pmap.py", "test_copies_run_and_lower"),
        ("e2e/test_exec.py", "test_the_default_can_be_named"),
        ("e2e/test_exec.py", "test_isolated_python_is_named"),
        ("docs/test_warm_process.py", "test_commands_of_the_package_have_their_own_arguments"))),
    *(HeavyTests(f"unit/{file}.py", OTHERS, test, but=(kept,)) for file, test, kept in (
        ("checks/reference/test_rule_check",
         "test_equal_ids_may_mean_replicas_in_one_op_and_partitions_in_another", "collective_permute"),
        ("jaxbridge/decorator/test_sharded_parameters",
         "test_uneven_shards_and_donated_parameters_that_are_read_after_their_update", "time"),
        ("jaxbridge/decorator/test_sharded_updates", "test_states_of_optax_without_annotations", "clip"),
        ("jaxbridge/decorator/test_sharded_updates", "test_steps_that_stay_as_they_are_are_one_line", "no sum"),
        ("jaxbridge/decorator/test_dropped_steps", "test_a_dropped_step_is_freed", "lower-{}"),
        ("jaxbridge/choose/test_candidates",
         "test_the_other_partitioner_runs_only_where_a_scatter_keeps_the_carry", "embedding-comm-shift"),
        ("jaxbridge/choose/test_planned", "test_a_damaged_plan_stops_the_step_or_is_replaced", "content3"),
        ("jaxbridge/choose/test_planned", "test_what_changed_is_said_and_nothing_runs", "options1"),
        ("checks/reference/test_rule_instance_ops", "test_a_sum_and_a_linear_op_change_places", "slice"),
        ("jaxbridge/choose/test_baseline_run", "test_what_is_expected_wrongly_changes_no_choice", "0"),
        ("cost/test_one_model", "test_a_gpt_step_takes_as_long_by_its_module", "wide"),
        ("timeline/test_random_schedules", "test_both_simulators_agree", "0.2"),
        ("passes/test_carried_fillings", "test_other_sources_are_made_in_each_loop", "one number"))),
    *(HeavyTests(f"{file}.py", OTHERS, test, only=left_out) for file, test, left_out in (
        ("unit/checks/reference/test_rule_instance_ops", "test_wrong_ones_are_caught", ("fft",)),
        ("unit/jaxbridge/decorator/test_features", "test_what_follows_the_reduction", ("pallas",)),
        ("unit/jaxbridge/frameworks/test_lost_updates", "test_objects_that_are_returned_train", ("as it is",)),
        ("unit/jaxbridge/hook/test_pmap", "test_the_hook_finds_a_pmap_by_the_users_name", ("pmap_train_step",)),
        ("unit/cli/test_extras", "test_one_line_names_the_extra", ("jax_plugins",)),
        ("unit/util/test_shared_sets", "test_they_do_what_sets_do", ("9000",)),
        ("unit/ir/test_readers", "test_index_and_search_agree", ("1",)),
        ("unit/editors/test_textmate", "test_an_editor_sees_what_the_parser_sees", ("linearity",)),
        *((f"unit/passes/{file}", "test_values_stay", ("1", "2"))
          for file in ("test_interleave_halves", "test_sequence_parallel_random")),
        ("unit/passes/all_reduce_fusion/test_periodic", "test_every_item_once_and_hardly_more_exposed",
         ("3", "4", "5")),
        ("unit/passes/all_reduce_fusion/test_plan",
         "test_no_partition_at_all_is_better_when_all_are_needed_at_the_end", ("3", "4", "5")),
        ("oracle/test_fusion_comm_pipeline", "test_comm", ("108", "109", "11")),
        ("e2e/test_rotated_masks_on_devices", "test_the_same_bits", ("2-1", "5-2")))),
)


def is_heavy(file: str, name: str) -> bool:
    """Whether a test is one of ``HEAVY``.

    Args:
      file: path below ``tests``, with ``/``.
      name: of the test, with its parameters in brackets.

    Example:
      >>> is_heavy("docs/test_site.py", "test_every_link_leads_somewhere")
      True
      >>> is_heavy("docs/test_pages.py", "test_what_the_page_shows_is_what_happens[docs/faq.md]")
      False
    """
    test, _, parameter = name.partition("[")
    return any(each.holds(test, parameter) for each in _BY_FILE.get(file, ()))


_BY_FILE = {file: [each for each in HEAVY if each.file == file] for file in {each.file for each in HEAVY}}

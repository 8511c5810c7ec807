
// CHECK-LABEL: module @module_known_attr
// CHECK-SAME: mhlo.frontend_attributes
// CHECK-SAME: mhlo.input_output_alias
// CHECK-SAME: mhlo.is_dynamic
// CHECK-SAME: mhlo.is_same_data_across_replicas
// CHECK-SAME: mhlo.num_partitions
// CHECK-SAME: mhlo.num_replicas
// CHECK-SAME: mhlo.spmd_output_sharding
// CHECK-SAME: mhlo.spmd_parameters_shardings
// CHECK-SAME: mhlo.use_auto_spmd_partitioning
// CHECK-SAME: mhlo.xla_entry_computation_parameter_layouts
// CHECK-SAME: mhlo.xla_entry_computation_parameter_tiles
// CHECK-SAME: mhlo.xla_entry_computation_result_layout
// CHECK-SAME: mhlo.xla_entry_computation_result_tiles
module @module_known_attr attributes {
  mhlo.frontend_attributes = "",
  mhlo.input_output_alias = "",
  mhlo.is_dynamic = "",
  mhlo.is_same_data_across_replicas = "",
  mhlo.num_partitions = "",
  mhlo.num_replicas = "",
  mhlo.spmd_output_sharding = "",
  mhlo.spmd_parameters_shardings = [""],
  mhlo.use_auto_spmd_partitioning = "",
  mhlo.xla_entry_computation_parameter_layouts = "",
  mhlo.xla_entry_computation_parameter_tiles = "",
  mhlo.xla_entry_computation_result_layout = "",
  mhlo.xla_entry_computation_result_tiles = ""
} {
  func.func @main(%arg0: tensor<2x2xi32>) -> tensor<2x2xi32> {
    return %arg0 : tensor<2x2xi32>
  }
}


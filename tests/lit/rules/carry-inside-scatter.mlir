// AR(scatter-add(k, i, u)) = c + AR(scatter-add(0, i, u)) when k is c on one member of each group and 0 on the others
// RUN: %hlorewrite opt %s --pass='rules{only=carry-inside-scatter}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=carry-inside-scatter}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires: XLA's partitioner compares for inequality and puts the zero first.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[ARG_0:[A-Za-z0-9_]+]]: tensor<8x2xf32>, %[[ARG_1:[A-Za-z0-9_]+]]: tensor<3x1xi32>, %[[ARG_2:[A-Za-z0-9_]+]]: tensor<3x2xf32>) -> tensor<8x2xf32> {
// CHECK-NEXT: %[[PARTITION_ID_0:[A-Za-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_0:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_1:[A-Za-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK-NEXT: %[[REMAINDER_0:[A-Za-z0-9_]+]] = stablehlo.remainder %[[PARTITION_ID_0]], %[[CONSTANT_1]] : tensor<ui32>
// CHECK-NEXT: %[[COMPARE_0:[A-Za-z0-9_]+]] = stablehlo.compare NE, %[[REMAINDER_0]], %[[CONSTANT_0]] : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_0:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[COMPARE_0]], dims = [] : (tensor<i1>) -> tensor<8x2xi1>
// CHECK-NEXT: %[[CONSTANT_2:[A-Za-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_1:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[CONSTANT_2]], dims = [] : (tensor<f32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[CONSTANT_3:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_4:[A-Za-z0-9_]+]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_5:[A-Za-z0-9_]+]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %[[WHILE_0:[A-Za-z0-9_]+]]:2 = stablehlo.while(%[[ARG_3:[A-Za-z0-9_]+]] = %[[CONSTANT_3]], %[[ARG_4:[A-Za-z0-9_]+]] = %[[BROADCAST_IN_DIM_1]]) : tensor<i32>, tensor<8x2xf32>
// CHECK-NEXT: cond {
// CHECK-NEXT: %[[COMPARE_1:[A-Za-z0-9_]+]] = stablehlo.compare LT, %[[ARG_3]], %[[CONSTANT_5]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE_1]] : tensor<i1>
// CHECK-NEXT: } do {
// CHECK-NEXT: %[[CONSTANT_6:[A-Za-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<8x2xf32>
// CHECK-NEXT: %[[COMPARE_1]] = "stablehlo.scatter"(%[[CONSTANT_6]], %[[ARG_1]], %[[ARG_2]]) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5:[A-Za-z0-9_]+]]: tensor<f32>, %[[ARG_6:[A-Za-z0-9_]+]]: tensor<f32>):
// CHECK-NEXT: %[[ADD_0:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[ALL_REDUCE_0:[A-Za-z0-9_]+]] = "stablehlo.all_reduce"(%[[COMPARE_1]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5]]: tensor<f32>, %[[ARG_6]]: tensor<f32>):
// CHECK-NEXT: %[[ADD_0]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[ADD_1:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_4]], %[[ALL_REDUCE_0]] : tensor<8x2xf32>
// CHECK-NEXT: %[[ADD_2:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_3]], %[[CONSTANT_4]] : tensor<i32>
// CHECK-NEXT: stablehlo.return %[[ADD_2]], %[[ADD_1]] : tensor<i32>, tensor<8x2xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[WHILE_0]]#1 : tensor<8x2xf32>
// CHECK-NEXT: }
  func.func @main(%table: tensor<8x2xf32>, %rows: tensor<3x1xi32>, %updates: tensor<3x2xf32>) -> tensor<8x2xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %none = stablehlo.constant dense<0> : tensor<ui32>
    %c2 = stablehlo.constant dense<2> : tensor<ui32>
    %place = stablehlo.remainder %id, %c2 : tensor<ui32>
    %there = stablehlo.compare NE, %place, %none : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %mask = stablehlo.broadcast_in_dim %there, dims = [] : (tensor<i1>) -> tensor<8x2xi1>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %sums:2 = stablehlo.while(%i = %i0, %carry = %zeros) : tensor<i32>, tensor<8x2xf32>
    cond {
      %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %kept = stablehlo.select %mask, %zeros, %carry : tensor<8x2xi1>, tensor<8x2xf32>
      %added = "stablehlo.scatter"(%kept, %rows, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<8x2xf32>
      // expected-remark@+1 {{applied: carry-inside-scatter: AR(scatter-add(k, i, u)) = c + AR(scatter-add(0, i, u))}}
      %sum = "stablehlo.all_reduce"(%added) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<8x2xf32>
    }
    return %sums#1 : tensor<8x2xf32>
  }
}

// -----

// It fires: the other way round, in bf16.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[ARG_0:[A-Za-z0-9_]+]]: tensor<8x2xbf16>, %[[ARG_1:[A-Za-z0-9_]+]]: tensor<3x1xi32>, %[[ARG_2:[A-Za-z0-9_]+]]: tensor<3x2xbf16>) -> tensor<8x2xbf16> {
// CHECK-NEXT: %[[PARTITION_ID_0:[A-Za-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_0:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_1:[A-Za-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK-NEXT: %[[REMAINDER_0:[A-Za-z0-9_]+]] = stablehlo.remainder %[[PARTITION_ID_0]], %[[CONSTANT_1]] : tensor<ui32>
// CHECK-NEXT: %[[COMPARE_0:[A-Za-z0-9_]+]] = stablehlo.compare EQ, %[[REMAINDER_0]], %[[CONSTANT_0]] : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_0:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[COMPARE_0]], dims = [] : (tensor<i1>) -> tensor<8x2xi1>
// CHECK-NEXT: %[[CONSTANT_2:[A-Za-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_1:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[CONSTANT_2]], dims = [] : (tensor<bf16>) -> tensor<8x2xbf16>
// CHECK-NEXT: %[[CONSTANT_3:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_4:[A-Za-z0-9_]+]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_5:[A-Za-z0-9_]+]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %[[WHILE_0:[A-Za-z0-9_]+]]:2 = stablehlo.while(%[[ARG_3:[A-Za-z0-9_]+]] = %[[CONSTANT_3]], %[[ARG_4:[A-Za-z0-9_]+]] = %[[BROADCAST_IN_DIM_1]]) : tensor<i32>, tensor<8x2xbf16>
// CHECK-NEXT: cond {
// CHECK-NEXT: %[[COMPARE_1:[A-Za-z0-9_]+]] = stablehlo.compare LT, %[[ARG_3]], %[[CONSTANT_5]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE_1]] : tensor<i1>
// CHECK-NEXT: } do {
// CHECK-NEXT: %[[CONSTANT_6:[A-Za-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<8x2xbf16>
// CHECK-NEXT: %[[COMPARE_1]] = "stablehlo.scatter"(%[[CONSTANT_6]], %[[ARG_1]], %[[ARG_2]]) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5:[A-Za-z0-9_]+]]: tensor<bf16>, %[[ARG_6:[A-Za-z0-9_]+]]: tensor<bf16>):
// CHECK-NEXT: %[[ADD_0:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<bf16>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<bf16>
// CHECK-NEXT: }) : (tensor<8x2xbf16>, tensor<3x1xi32>, tensor<3x2xbf16>) -> tensor<8x2xbf16>
// CHECK-NEXT: %[[ALL_REDUCE_0:[A-Za-z0-9_]+]] = "stablehlo.all_reduce"(%[[COMPARE_1]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5]]: tensor<bf16>, %[[ARG_6]]: tensor<bf16>):
// CHECK-NEXT: %[[ADD_0]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<bf16>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<bf16>
// CHECK-NEXT: }) : (tensor<8x2xbf16>) -> tensor<8x2xbf16>
// CHECK-NEXT: %[[ADD_1:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_4]], %[[ALL_REDUCE_0]] : tensor<8x2xbf16>
// CHECK-NEXT: %[[ADD_2:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_3]], %[[CONSTANT_4]] : tensor<i32>
// CHECK-NEXT: stablehlo.return %[[ADD_2]], %[[ADD_1]] : tensor<i32>, tensor<8x2xbf16>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[WHILE_0]]#1 : tensor<8x2xbf16>
// CHECK-NEXT: }
  func.func @main(%table: tensor<8x2xbf16>, %rows: tensor<3x1xi32>, %updates: tensor<3x2xbf16>) -> tensor<8x2xbf16> {
    %id = stablehlo.partition_id : tensor<ui32>
    %none = stablehlo.constant dense<0> : tensor<ui32>
    %c2 = stablehlo.constant dense<2> : tensor<ui32>
    %place = stablehlo.remainder %id, %c2 : tensor<ui32>
    %there = stablehlo.compare EQ, %place, %none : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %mask = stablehlo.broadcast_in_dim %there, dims = [] : (tensor<i1>) -> tensor<8x2xi1>
    %zero = stablehlo.constant dense<0.0> : tensor<bf16>
    %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<bf16>) -> tensor<8x2xbf16>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %sums:2 = stablehlo.while(%i = %i0, %carry = %zeros) : tensor<i32>, tensor<8x2xbf16>
    cond {
      %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %kept = stablehlo.select %mask, %carry, %zeros : tensor<8x2xi1>, tensor<8x2xbf16>
      %added = "stablehlo.scatter"(%kept, %rows, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%l: tensor<bf16>, %r: tensor<bf16>):
        %s = stablehlo.add %l, %r : tensor<bf16>
        stablehlo.return %s : tensor<bf16>
      }) : (tensor<8x2xbf16>, tensor<3x1xi32>, tensor<3x2xbf16>) -> tensor<8x2xbf16>
      // expected-remark@+1 {{applied: carry-inside-scatter: AR(scatter-add(k, i, u)) = c + AR(scatter-add(0, i, u))}}
      %sum = "stablehlo.all_reduce"(%added) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%l: tensor<bf16>, %r: tensor<bf16>):
        %s = stablehlo.add %l, %r : tensor<bf16>
        stablehlo.return %s : tensor<bf16>
      }) : (tensor<8x2xbf16>) -> tensor<8x2xbf16>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<8x2xbf16>
    }
    return %sums#1 : tensor<8x2xbf16>
  }
}

// -----

// It fires: integers.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[ARG_0:[A-Za-z0-9_]+]]: tensor<8x2xi32>, %[[ARG_1:[A-Za-z0-9_]+]]: tensor<3x1xi32>, %[[ARG_2:[A-Za-z0-9_]+]]: tensor<3x2xi32>) -> tensor<8x2xi32> {
// CHECK-NEXT: %[[PARTITION_ID_0:[A-Za-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_0:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_1:[A-Za-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK-NEXT: %[[REMAINDER_0:[A-Za-z0-9_]+]] = stablehlo.remainder %[[PARTITION_ID_0]], %[[CONSTANT_1]] : tensor<ui32>
// CHECK-NEXT: %[[COMPARE_0:[A-Za-z0-9_]+]] = stablehlo.compare NE, %[[REMAINDER_0]], %[[CONSTANT_0]] : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_0:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[COMPARE_0]], dims = [] : (tensor<i1>) -> tensor<8x2xi1>
// CHECK-NEXT: %[[CONSTANT_2:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_1:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[CONSTANT_2]], dims = [] : (tensor<i32>) -> tensor<8x2xi32>
// CHECK-NEXT: %[[CONSTANT_3:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_4:[A-Za-z0-9_]+]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_5:[A-Za-z0-9_]+]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %[[WHILE_0:[A-Za-z0-9_]+]]:2 = stablehlo.while(%[[ARG_3:[A-Za-z0-9_]+]] = %[[CONSTANT_3]], %[[ARG_4:[A-Za-z0-9_]+]] = %[[BROADCAST_IN_DIM_1]]) : tensor<i32>, tensor<8x2xi32>
// CHECK-NEXT: cond {
// CHECK-NEXT: %[[COMPARE_1:[A-Za-z0-9_]+]] = stablehlo.compare LT, %[[ARG_3]], %[[CONSTANT_5]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE_1]] : tensor<i1>
// CHECK-NEXT: } do {
// CHECK-NEXT: %[[CONSTANT_6:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<8x2xi32>
// CHECK-NEXT: %[[COMPARE_1]] = "stablehlo.scatter"(%[[CONSTANT_6]], %[[ARG_1]], %[[ARG_2]]) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5:[A-Za-z0-9_]+]]: tensor<i32>, %[[ARG_6:[A-Za-z0-9_]+]]: tensor<i32>):
// CHECK-NEXT: %[[ADD_0:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<i32>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<i32>
// CHECK-NEXT: }) : (tensor<8x2xi32>, tensor<3x1xi32>, tensor<3x2xi32>) -> tensor<8x2xi32>
// CHECK-NEXT: %[[ALL_REDUCE_0:[A-Za-z0-9_]+]] = "stablehlo.all_reduce"(%[[COMPARE_1]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5]]: tensor<i32>, %[[ARG_6]]: tensor<i32>):
// CHECK-NEXT: %[[ADD_0]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<i32>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<i32>
// CHECK-NEXT: }) : (tensor<8x2xi32>) -> tensor<8x2xi32>
// CHECK-NEXT: %[[ADD_1:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_4]], %[[ALL_REDUCE_0]] : tensor<8x2xi32>
// CHECK-NEXT: %[[ADD_2:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_3]], %[[CONSTANT_4]] : tensor<i32>
// CHECK-NEXT: stablehlo.return %[[ADD_2]], %[[ADD_1]] : tensor<i32>, tensor<8x2xi32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[WHILE_0]]#1 : tensor<8x2xi32>
// CHECK-NEXT: }
  func.func @main(%table: tensor<8x2xi32>, %rows: tensor<3x1xi32>, %updates: tensor<3x2xi32>) -> tensor<8x2xi32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %none = stablehlo.constant dense<0> : tensor<ui32>
    %c2 = stablehlo.constant dense<2> : tensor<ui32>
    %place = stablehlo.remainder %id, %c2 : tensor<ui32>
    %there = stablehlo.compare NE, %place, %none : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %mask = stablehlo.broadcast_in_dim %there, dims = [] : (tensor<i1>) -> tensor<8x2xi1>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<i32>) -> tensor<8x2xi32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %sums:2 = stablehlo.while(%i = %i0, %carry = %zeros) : tensor<i32>, tensor<8x2xi32>
    cond {
      %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %kept = stablehlo.select %mask, %zeros, %carry : tensor<8x2xi1>, tensor<8x2xi32>
      %added = "stablehlo.scatter"(%kept, %rows, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%l: tensor<i32>, %r: tensor<i32>):
        %s = stablehlo.add %l, %r : tensor<i32>
        stablehlo.return %s : tensor<i32>
      }) : (tensor<8x2xi32>, tensor<3x1xi32>, tensor<3x2xi32>) -> tensor<8x2xi32>
      // expected-remark@+1 {{applied: carry-inside-scatter: AR(scatter-add(k, i, u)) = c + AR(scatter-add(0, i, u))}}
      %sum = "stablehlo.all_reduce"(%added) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%l: tensor<i32>, %r: tensor<i32>):
        %s = stablehlo.add %l, %r : tensor<i32>
        stablehlo.return %s : tensor<i32>
      }) : (tensor<8x2xi32>) -> tensor<8x2xi32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<8x2xi32>
    }
    return %sums#1 : tensor<8x2xi32>
  }
}

// -----

// It stays away: all members of a group keep the carry, or none does.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[ARG_0:[A-Za-z0-9_]+]]: tensor<8x2xf32>, %[[ARG_1:[A-Za-z0-9_]+]]: tensor<3x1xi32>, %[[ARG_2:[A-Za-z0-9_]+]]: tensor<3x2xf32>) -> tensor<8x2xf32> {
// CHECK-NEXT: %[[PARTITION_ID_0:[A-Za-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_0:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_1:[A-Za-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK-NEXT: %[[REMAINDER_0:[A-Za-z0-9_]+]] = stablehlo.remainder %[[PARTITION_ID_0]], %[[CONSTANT_1]] : tensor<ui32>
// CHECK-NEXT: %[[COMPARE_0:[A-Za-z0-9_]+]] = stablehlo.compare NE, %[[REMAINDER_0]], %[[CONSTANT_0]] : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_0:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[COMPARE_0]], dims = [] : (tensor<i1>) -> tensor<8x2xi1>
// CHECK-NEXT: %[[CONSTANT_2:[A-Za-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_1:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[CONSTANT_2]], dims = [] : (tensor<f32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[CONSTANT_3:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_4:[A-Za-z0-9_]+]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_5:[A-Za-z0-9_]+]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %[[WHILE_0:[A-Za-z0-9_]+]]:2 = stablehlo.while(%[[ARG_3:[A-Za-z0-9_]+]] = %[[CONSTANT_3]], %[[ARG_4:[A-Za-z0-9_]+]] = %[[BROADCAST_IN_DIM_1]]) : tensor<i32>, tensor<8x2xf32>
// CHECK-NEXT: cond {
// CHECK-NEXT: %[[COMPARE_1:[A-Za-z0-9_]+]] = stablehlo.compare LT, %[[ARG_3]], %[[CONSTANT_5]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE_1]] : tensor<i1>
// CHECK-NEXT: } do {
// CHECK-NEXT: %[[COMPARE_1]] = stablehlo.select %[[BROADCAST_IN_DIM_0]], %[[BROADCAST_IN_DIM_1]], %[[ARG_4]] : tensor<8x2xi1>, tensor<8x2xf32>
// CHECK-NEXT: %[[SCATTER_0:[A-Za-z0-9_]+]] = "stablehlo.scatter"(%[[COMPARE_1]], %[[ARG_1]], %[[ARG_2]]) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5:[A-Za-z0-9_]+]]: tensor<f32>, %[[ARG_6:[A-Za-z0-9_]+]]: tensor<f32>):
// CHECK-NEXT: %[[ADD_0:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[ALL_REDUCE_0:[A-Za-z0-9_]+]] = "stablehlo.all_reduce"(%[[SCATTER_0]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5]]: tensor<f32>, %[[ARG_6]]: tensor<f32>):
// CHECK-NEXT: %[[ADD_0]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[ADD_1:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_3]], %[[CONSTANT_4]] : tensor<i32>
// CHECK-NEXT: stablehlo.return %[[ADD_1]], %[[ALL_REDUCE_0]] : tensor<i32>, tensor<8x2xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[WHILE_0]]#1 : tensor<8x2xf32>
// CHECK-NEXT: }
  func.func @main(%table: tensor<8x2xf32>, %rows: tensor<3x1xi32>, %updates: tensor<3x2xf32>) -> tensor<8x2xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %none = stablehlo.constant dense<0> : tensor<ui32>
    %c2 = stablehlo.constant dense<2> : tensor<ui32>
    %place = stablehlo.remainder %id, %c2 : tensor<ui32>
    %there = stablehlo.compare NE, %place, %none : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %mask = stablehlo.broadcast_in_dim %there, dims = [] : (tensor<i1>) -> tensor<8x2xi1>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %sums:2 = stablehlo.while(%i = %i0, %carry = %zeros) : tensor<i32>, tensor<8x2xf32>
    cond {
      %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %kept = stablehlo.select %mask, %zeros, %carry : tensor<8x2xi1>, tensor<8x2xf32>
      %added = "stablehlo.scatter"(%kept, %rows, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<8x2xf32>
      %sum = "stablehlo.all_reduce"(%added) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<8x2xf32>
    }
    return %sums#1 : tensor<8x2xf32>
  }
}

// -----

// It stays away: two of four keep it.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[ARG_0:[A-Za-z0-9_]+]]: tensor<8x2xf32>, %[[ARG_1:[A-Za-z0-9_]+]]: tensor<3x1xi32>, %[[ARG_2:[A-Za-z0-9_]+]]: tensor<3x2xf32>) -> tensor<8x2xf32> {
// CHECK-NEXT: %[[PARTITION_ID_0:[A-Za-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_0:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_1:[A-Za-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK-NEXT: %[[REMAINDER_0:[A-Za-z0-9_]+]] = stablehlo.remainder %[[PARTITION_ID_0]], %[[CONSTANT_1]] : tensor<ui32>
// CHECK-NEXT: %[[COMPARE_0:[A-Za-z0-9_]+]] = stablehlo.compare NE, %[[REMAINDER_0]], %[[CONSTANT_0]] : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_0:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[COMPARE_0]], dims = [] : (tensor<i1>) -> tensor<8x2xi1>
// CHECK-NEXT: %[[CONSTANT_2:[A-Za-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_1:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[CONSTANT_2]], dims = [] : (tensor<f32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[CONSTANT_3:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_4:[A-Za-z0-9_]+]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_5:[A-Za-z0-9_]+]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %[[WHILE_0:[A-Za-z0-9_]+]]:2 = stablehlo.while(%[[ARG_3:[A-Za-z0-9_]+]] = %[[CONSTANT_3]], %[[ARG_4:[A-Za-z0-9_]+]] = %[[BROADCAST_IN_DIM_1]]) : tensor<i32>, tensor<8x2xf32>
// CHECK-NEXT: cond {
// CHECK-NEXT: %[[COMPARE_1:[A-Za-z0-9_]+]] = stablehlo.compare LT, %[[ARG_3]], %[[CONSTANT_5]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE_1]] : tensor<i1>
// CHECK-NEXT: } do {
// CHECK-NEXT: %[[COMPARE_1]] = stablehlo.select %[[BROADCAST_IN_DIM_0]], %[[BROADCAST_IN_DIM_1]], %[[ARG_4]] : tensor<8x2xi1>, tensor<8x2xf32>
// CHECK-NEXT: %[[SCATTER_0:[A-Za-z0-9_]+]] = "stablehlo.scatter"(%[[COMPARE_1]], %[[ARG_1]], %[[ARG_2]]) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5:[A-Za-z0-9_]+]]: tensor<f32>, %[[ARG_6:[A-Za-z0-9_]+]]: tensor<f32>):
// CHECK-NEXT: %[[ADD_0:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[ALL_REDUCE_0:[A-Za-z0-9_]+]] = "stablehlo.all_reduce"(%[[SCATTER_0]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5]]: tensor<f32>, %[[ARG_6]]: tensor<f32>):
// CHECK-NEXT: %[[ADD_0]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[ADD_1:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_3]], %[[CONSTANT_4]] : tensor<i32>
// CHECK-NEXT: stablehlo.return %[[ADD_1]], %[[ALL_REDUCE_0]] : tensor<i32>, tensor<8x2xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[WHILE_0]]#1 : tensor<8x2xf32>
// CHECK-NEXT: }
  func.func @main(%table: tensor<8x2xf32>, %rows: tensor<3x1xi32>, %updates: tensor<3x2xf32>) -> tensor<8x2xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %none = stablehlo.constant dense<0> : tensor<ui32>
    %c2 = stablehlo.constant dense<2> : tensor<ui32>
    %place = stablehlo.remainder %id, %c2 : tensor<ui32>
    %there = stablehlo.compare NE, %place, %none : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %mask = stablehlo.broadcast_in_dim %there, dims = [] : (tensor<i1>) -> tensor<8x2xi1>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %sums:2 = stablehlo.while(%i = %i0, %carry = %zeros) : tensor<i32>, tensor<8x2xf32>
    cond {
      %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %kept = stablehlo.select %mask, %zeros, %carry : tensor<8x2xi1>, tensor<8x2xf32>
      %added = "stablehlo.scatter"(%kept, %rows, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<8x2xf32>
      %sum = "stablehlo.all_reduce"(%added) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<8x2xf32>
    }
    return %sums#1 : tensor<8x2xf32>
  }
}

// -----

// It stays away: the carry differs between devices.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[ARG_0:[A-Za-z0-9_]+]]: tensor<8x2xf32>, %[[ARG_1:[A-Za-z0-9_]+]]: tensor<3x1xi32>, %[[ARG_2:[A-Za-z0-9_]+]]: tensor<3x2xf32>) -> tensor<8x2xf32> {
// CHECK-NEXT: %[[PARTITION_ID_0:[A-Za-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_0:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK-NEXT: %[[CONSTANT_1:[A-Za-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK-NEXT: %[[REMAINDER_0:[A-Za-z0-9_]+]] = stablehlo.remainder %[[PARTITION_ID_0]], %[[CONSTANT_1]] : tensor<ui32>
// CHECK-NEXT: %[[COMPARE_0:[A-Za-z0-9_]+]] = stablehlo.compare NE, %[[REMAINDER_0]], %[[CONSTANT_0]] : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_0:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[COMPARE_0]], dims = [] : (tensor<i1>) -> tensor<8x2xi1>
// CHECK-NEXT: %[[CONSTANT_2:[A-Za-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[BROADCAST_IN_DIM_1:[A-Za-z0-9_]+]] = stablehlo.broadcast_in_dim %[[CONSTANT_2]], dims = [] : (tensor<f32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[CONSTANT_3:[A-Za-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_4:[A-Za-z0-9_]+]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %[[CONSTANT_5:[A-Za-z0-9_]+]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %[[WHILE_0:[A-Za-z0-9_]+]]:2 = stablehlo.while(%[[ARG_3:[A-Za-z0-9_]+]] = %[[CONSTANT_3]], %[[ARG_4:[A-Za-z0-9_]+]] = %[[ARG_0]]) : tensor<i32>, tensor<8x2xf32>
// CHECK-NEXT: cond {
// CHECK-NEXT: %[[COMPARE_1:[A-Za-z0-9_]+]] = stablehlo.compare LT, %[[ARG_3]], %[[CONSTANT_5]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE_1]] : tensor<i1>
// CHECK-NEXT: } do {
// CHECK-NEXT: %[[COMPARE_1]] = stablehlo.select %[[BROADCAST_IN_DIM_0]], %[[BROADCAST_IN_DIM_1]], %[[ARG_4]] : tensor<8x2xi1>, tensor<8x2xf32>
// CHECK-NEXT: %[[SCATTER_0:[A-Za-z0-9_]+]] = "stablehlo.scatter"(%[[COMPARE_1]], %[[ARG_1]], %[[ARG_2]]) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5:[A-Za-z0-9_]+]]: tensor<f32>, %[[ARG_6:[A-Za-z0-9_]+]]: tensor<f32>):
// CHECK-NEXT: %[[ADD_0:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[ALL_REDUCE_0:[A-Za-z0-9_]+]] = "stablehlo.all_reduce"(%[[SCATTER_0]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%[[ARG_5]]: tensor<f32>, %[[ARG_6]]: tensor<f32>):
// CHECK-NEXT: %[[ADD_0]] = stablehlo.add %[[ARG_5]], %[[ARG_6]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[ADD_0]] : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[ADD_1:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_3]], %[[CONSTANT_4]] : tensor<i32>
// CHECK-NEXT: stablehlo.return %[[ADD_1]], %[[ALL_REDUCE_0]] : tensor<i32>, tensor<8x2xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[WHILE_0]]#1 : tensor<8x2xf32>
// CHECK-NEXT: }
  func.func @main(%table: tensor<8x2xf32>, %rows: tensor<3x1xi32>, %updates: tensor<3x2xf32>) -> tensor<8x2xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %none = stablehlo.constant dense<0> : tensor<ui32>
    %c2 = stablehlo.constant dense<2> : tensor<ui32>
    %place = stablehlo.remainder %id, %c2 : tensor<ui32>
    %there = stablehlo.compare NE, %place, %none : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %mask = stablehlo.broadcast_in_dim %there, dims = [] : (tensor<i1>) -> tensor<8x2xi1>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %sums:2 = stablehlo.while(%i = %i0, %carry = %table) : tensor<i32>, tensor<8x2xf32>
    cond {
      %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %kept = stablehlo.select %mask, %zeros, %carry : tensor<8x2xi1>, tensor<8x2xf32>
      %added = "stablehlo.scatter"(%kept, %rows, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<8x2xf32>
      // expected-remark@+1 {{blocked: carry-inside-scatter: the value differs between devices}}
      %sum = "stablehlo.all_reduce"(%added) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<8x2xf32>
    }
    return %sums#1 : tensor<8x2xf32>
  }
}

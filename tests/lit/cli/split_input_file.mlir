// RUN: %hlorewrite opt %s --split-input-file --pass=cse | %filecheck %s

// CHECK: func.func @one
// CHECK: // -----
// CHECK: func.func @two
func.func @one() { return }

// -----

func.func @two() { return }

// RUN: %hlorewrite opt %s --allow-unregistered-dialect --pass=cse | %filecheck %s

// CHECK: "my.op"() : () -> ()
func.func @main() {
  "my.op"() : () -> ()
  return
}

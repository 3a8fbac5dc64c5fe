// Package nvml finds and measures NVIDIA devices through the driver's own
// library. That library may lack a function, answer nonsense, hang or crash,
// and each of these would take the program along; therefore only a child
// process ever loads it (see [RunChild]), and [Source], its parent, asks it
// through a pipe. When the child dies or stops answering it is replaced, what
// it was doing is left out for a while, and everything else goes on being
// read; what could not be read is said in words.
//
// The child needs C linkage (go-nvml). A program built without it names another
// one that has it in [Config.Command].
package nvml

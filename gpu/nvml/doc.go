// Package nvml finds and measures NVIDIA devices through the driver's own library. That library may lack a function,
// answer nonsense, hang or crash, and each of these would take the program along; therefore only a child process ever
// loads it (see [ChildMain]), and [Source], its parent, asks it through a pipe. When the child dies or stops answering
// it is replaced, what it was doing is left out for a while, and everything else goes on being read; what could not be
// read is said in words.
//
// # What is measured
//
// Busy time is for how long anything at all ran on a device, not how much of it. On a whole device the driver charges
// each of its samples to one process. It charges nobody on a device that is divided into MIG instances: there its
// performance monitoring (GPM, from the Hopper generation on) tells for how much of the time each GPU instance had
// work, and that counts for the part of the device that the instance is, so that nobody is ever busier than what they
// were promised. The processes in an instance, which is granted to one session, share it evenly. Where the driver or
// the card does not monitor, does not let this user ask, or several compute instances share one GPU instance, busy time
// is unknown: it is divided by promise or missed, and said to be.
//
// The child needs C linkage (go-nvml). A program built without it names another one that has it in [Config.Command].
package nvml

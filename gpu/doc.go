// Package gpu is the arithmetic of devices: what a machine has, what is
// promised to whom, what is really free, and what was used. It starts nothing
// and reads no clock; sub-packages named by technology find and measure real
// devices.
//
// A [Source] lists devices and takes a [Sample] of them. A [Request] is what a
// session asks for. The [Ledger] turns it into a [Proposal] and holds its
// grants; [Books] compares the ledger with what the driver says is free. The
// [Guard] watches what sessions take of their memory. [Accounts] charges what
// devices did to sessions, to other processes, or to nobody, so that the parts
// always sum to what the devices counted.
package gpu

// Package link emulates a network path between two network namespaces where the
// kernel lacks netem: packets cross from one TUN device to another at an exact
// rate, after an exact delay, through a queue of a given depth, and some are lost
// at random. It needs Linux and root.
package link

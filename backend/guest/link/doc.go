// Package link is what the agent and the guest say to each other: the messages of the protocol that package guest
// describes, and [Client], with which the agent calls the guest of one container. It compiles on every system.
package link

// Package session says what Slipway is about: a [Spec] that a person writes, the
// [Session] that an agent keeps of it, the [Status] values it moves through and
// the table that says how, the [Phase] records that explain each step, the
// [Event] stream that tells of every change, and [Agent], the one interface
// between whoever asks and the machine that answers.
//
// The package is pure: it does no I/O and reads no clock. A function that needs
// the time takes it as an argument.
package session

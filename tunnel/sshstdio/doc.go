// Package sshstdio reaches another machine through the OpenSSH client of this
// one, with the person's own configuration: host names, jump hosts, keys, agent
// and second factors are what they are on the command line.
//
// A [Remote] is one destination. [Remote.Dial] starts a program there and makes
// its standard input and output a carrier of a tunnel; [Remote.Run] and
// [Remote.Upload] are for setting that program up. What ssh wants to ask goes
// to an [Asker] by way of this program itself, which ssh starts as its askpass
// program and which calls back over a private socket ([AskpassMain]). Answers
// never appear in an argument, an environment or a log.
//
// Nothing is passed to a shell on this side. On the far side only sh is
// expected, and whatever login shell the account has may be any that knows
// single quotes.
package sshstdio

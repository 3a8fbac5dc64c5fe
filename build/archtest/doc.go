// Package archtest holds the rules of this module's architecture as tests: who may import whom, which packages are
// pure, how long files and functions may be, and what never stands in the tree. A package without a line in the table
// fails, so that a new one is a decision and not an accident. Each failure says what to do about it.
package archtest

// Package archtest tests the rules of this module's architecture: imports, purity, the length of files and functions,
// and what must not be in the tree. A new package needs a line in the table. Each failure says what to do.
package archtest

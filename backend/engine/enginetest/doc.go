// Package enginetest holds [Run], the suite that each implementation of [engine.Engine] must pass, and what tests need
// of a real daemon.
package enginetest

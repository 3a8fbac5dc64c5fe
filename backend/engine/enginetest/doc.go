// Package enginetest has [Run], the suite for implementations of [engine.Engine], and what tests need of a real daemon.
package enginetest

// Package enginetest holds what tests need of an engine: [Fake], an engine in
// memory whose every fault a test can cause, and [Run], the suite that each
// implementation of [engine.Engine] must pass.
package enginetest

// Package serving decides what the inference services of one machine do next: which replicas are launched, drained and
// terminated, when a revision replaces another or is rolled back, how many replicas a service has, and which service
// sleeps so that another can start.
//
// The package is pure. [Plan] gets everything in a [Snapshot] and returns a [Decision]. What it must remember is in the
// [Record] of each service, which the caller stores before it carries out the actions. A plan repeats an action until a
// snapshot shows its effect, so the caller may die at any moment and plan again: a launch is repeated with the same
// number, by which the caller recognizes it. See "The life of a service" in backend/README.md.
package serving

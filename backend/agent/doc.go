// Package agent is authority over one machine: its queue, its sessions and
// their containers. It needs nobody to be connected.
//
// # The life of a launch
//
// Launch checks the spec, stores a PENDING session with the first row of its
// history in one transaction, and wakes the queue. The queue takes a snapshot of
// both books (what is promised, what waits), asks [scheduler.Plan] without a
// lock, and stores all placements in one transaction on the condition that the
// books are still the same: SCHEDULED, the grants and PREPARING. Whoever waits
// learns why, in numbers.
//
// From there to its end a session has one course: one goroutine that reads the
// record and does what its status calls for. Two phases lead to RUNNING, each
// an ordered list of steps with an undo: prepare (image, pull) and start
// (network, create, start, guest). A step that fails for a reason that may pass is
// undone and the phase tried again, at most five times with growing pauses; one
// that will fail again, such as an image that nobody has, ends the session at
// once. Each step and each phase has a time limit. While RUNNING the course
// keeps the links to the guests, the timeout of a batch, and an eye on the
// containers. A cluster session has several, the kernels, on a private network:
// they are made and started together, and one that ends takes the others
// along. Every end goes through TERMINATING, with the reason stored first: stop,
// keep the log, remove; then the record says TERMINATED, CANCELLED or ERROR.
//
// A launch without a pull costs four transactions until RUNNING: PENDING; the
// placement; PREPARED and CREATING; RUNNING.
//
// # Crashes
//
// The record is written before the deed, and every deed can be repeated: a
// container's name and labels carry session and attempt, and creating it again
// finds it. So reconciling is nothing but starting a course for every placed
// session, and comparing the engine's list with the records: containers of
// ended sessions and of earlier attempts are removed, running ones that no
// record knows are adopted from their labels. This happens at the start, when
// the engine answers again, and every minute.
//
// A container that no session needs and that cannot be removed keeps what was
// granted to it until it is gone, so that nobody is given the same.
//
// # While the engine does not answer
//
// Running sessions keep their status. What is being launched goes back to
// PENDING and waits, with the engine named as the reason; its remains are
// removed before it is tried again. Ends under way finish when the engine is
// back, unless they are forced: then the session ends at once, with a warning
// that names what is left behind.
//
// # Accounts
//
// What sessions had and used of devices and CPUs is counted in whole numbers
// and only ever grows. Time comes from a clock that nobody sets and that stands
// while the machine sleeps; the wall clock only names the buckets of minutes,
// hours and days. Counters, buckets and the cursors up to which they count are
// stored in one transaction, every ten seconds and when a session starts or
// ends, so that a restart counts nothing twice. A crash costs at most the use of
// devices since then; energy and CPU time are counted outside of this process
// and lose nothing.
//
// # The guard
//
// Where nothing stronger keeps a session to its share of a device's memory, the
// guard looks at each sample: it warns at nine tenths and acts by its policy on
// what stays above the share for two samples. What is not known is never held
// against a session.
//
// # Idle checks
//
// Every 15 s each running session is judged by package idle: by traffic through
// its terminals and apps, which passes through this process, by what its guests
// say runs in the foreground of terminals, by what notebook servers say of their
// kernels, and by what it makes of its resources. An end is announced by a
// warning and a banner in its terminals, and [Agent.Keep] puts it off. Warnings
// and the time of the last traffic outlive the agent; averages begin anew.
//
// # What is kept in memory
//
// The reason for a wait, the progress of a pull, samples of use and the events
// of the last while are not stored. A watcher that has missed too much starts
// from a snapshot.
package agent

package slurm


// Reason is why a job waits, or why it failed, as Slurm says it: printable text of at most 200 bytes. Empty: none.
type Reason string

package runs

// Machine is where runs are stored and which lockcheck makes them. It is the same for all runs of a command.
type Machine struct {
	Store  string // folder of all runs
	Binary string // path of lockcheck
	// Version and Command are lockcheck's version and command line, for the record.
	Version string
	Command []string
	// Pool keeps clusters on Docker from one run for the next; nil if each run has its own cluster.
	Pool *Pool
}

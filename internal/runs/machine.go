package runs

// Machine is where runs are kept and by which lockcheck they are made: the same for all
// runs of a command.
type Machine struct {
	Store  string // folder of all runs
	Binary string // lockcheck itself
	// Version of lockcheck and its command line, for the record.
	Version string
	Command []string
	// Pool keeps clusters on Docker from one run for the next; nil if each run has one of its own.
	Pool *Pool
}

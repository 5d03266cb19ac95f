package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// WorkloadApplication is Header.Workload of a test of a user's own application. Its history has no operations
// of workers. It has what replicas printed, what invariants answered, what was confirmed to the load, and
// faults.
const WorkloadApplication = "application"

// Functions of the history of an application. Each event happened between Event.From and Event.Time.
const (
	// Started and Ended are single Info events of a replica or of the load. Its program began, or ended by
	// itself; Note says how. A replica that a fault kills writes no Ended.
	Started Function = "started"
	Ended   Function = "ended"

	// Holding, Releasing, Released and Did are single Info events of a replica: it printed a line that
	// matches an expression of the app file. Releasing is printed before the lock is given back, Released
	// afterwards; so only Releasing shows until when the replica held the lock. Did is a piece of work, named
	// by ID.
	Holding   Function = "holding"
	Releasing Function = "releasing"
	Released  Function = "released"
	Did       Function = "did"

	// Missed is a single Info event of a replica or of the load. Lines that it printed were not read, for the
	// reason in Error, from From until its next event of another kind. Their content is unknown.
	Missed Function = "missed"

	// Accepted is a single OK event of the load: the application confirmed the piece of work named by ID.
	Accepted Function = "accepted"

	// Asked is an event of an asker: From is when the invariant named by Key was asked, Time is when it
	// answered. OK: it held. Fail: it did not hold, and Answer has the counterexample. Info: it could not be
	// asked, for the reason in Error.
	Asked Function = "asked"
)

// EndsHold says whether an event of a replica ends its hold.
func EndsHold(f Function) bool { return f == Releasing || f == Released || f == Ended }

// AnyVersion is Event.Note of a Write that replaces a value of any version.
const AnyVersion = "any version"

// Processes of the history of an application, besides its replicas. Each image that asks questions has one
// asker; the second and later ones are numbered.
const (
	Load  = "load"
	Asker = "invariants"
)

// Kinds of invariants.
const (
	InvariantOnce       = "once"       // the answer is always empty; each row is a piece of work done more than once
	InvariantNever      = "never"      // the answer is always empty
	InvariantAlways     = "always"     // the answer is never empty
	InvariantKept       = "kept"       // the last answer has every ID that was accepted
	InvariantEventually = "eventually" // the answer is not empty within some time after the last fault, and stays so
	// InvariantWork and InvariantLeader are no invariants. The answer to the first changes when the application has done
	// some work; the answer to the second names the replica that leads.
	InvariantWork   = "work"
	InvariantLeader = "leader"
)

// InvariantKinds lists the kinds that the list of an app file may have.
func InvariantKinds() []string {
	return []string{InvariantOnce, InvariantKept, InvariantNever, InvariantAlways, InvariantEventually}
}

// QuestionKinds lists those of all questions.
func QuestionKinds() []string { return append(InvariantKinds(), InvariantWork, InvariantLeader) }

// Judged says of a kind of questions whether something must be true of their answers.
func Judged(kind string) bool { return slices.Contains(InvariantKinds(), kind) }

// Application is what the checkers must know of a test of an application.
type Application struct {
	Replicas   []string    `json:"replicas"`
	Invariants []Invariant `json:"invariants"`
	// Resource: the application may keep data in lockcheck's resource, whose accesses are events of [Resource]. Each is a
	// Read or a Write of Key by Client, a replica or the load: OK, or Fail if it was refused for its Token or Base. From is
	// when the request arrived, and Time when it was applied, one at a time in the order of Seq. Version is what a read
	// returned, 0 for a key that nobody had written, or what a write made. Base is the version that a write had to
	// replace. A write with an ID has appended that line.
	Resource bool `json:"resource,omitempty"`
	// Says has the regular expressions by which the app file describes lines of replicas and of the load.
	Says map[Function][]string `json:"says,omitempty"`
}

// Invariant is one of the user's invariants. Its name is unique.
type Invariant struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Question string `json:"question"`     // as in the app file
	On       string `json:"on,omitempty"` // the database that is asked; "" for a request or a command
	// Within is how long InvariantEventually may take after the last fault, or InvariantKept after the end of
	// the load; 0 for the other kinds.
	Within time.Duration `json:"within_ns,omitempty"`
}

// Answer is what a question returned.
type Answer struct {
	// Rows are lines of output, or rows whose columns are separated by tabs. InvariantKept has all rows,
	// other kinds only the first ones.
	Rows []string `json:"rows,omitempty"`
	// Columns are the names of the columns of Rows, if a database reported them; nil otherwise.
	Columns []string `json:"columns,omitempty"`
	// Count is the number of all rows. If an answer was too large and its first row decides, it is the number
	// of rows read.
	Count int64 `json:"count"`
}

// asker says whether a process asks invariants.
func asker(process string) bool {
	rest, is := strings.CutPrefix(process, Asker)
	return is && (rest == "" || rest[0] == '-')
}

// application checks an event of the history of an application that is not of the nemesis or the harness.
func (v *Validator) application(e *Event) error {
	if e.From <= 0 || e.From > e.Time {
		return fmt.Errorf("%s from %d to %d", e.F, e.From, e.Time)
	}
	switch {
	case asker(e.Process):
		return v.answer(e)
	case e.Process == Load:
		return ofLoad(e)
	case e.Process == Resource && v.app.Resource:
		return v.access(e)
	}
	return v.replica(e)
}

// access checks a request to the resource: each write makes the next version of its key.
func (v *Validator) access(e *Event) error {
	version := v.versions[e.Key]
	if e.F == Write && e.Type == OK {
		version++
	}
	switch {
	case e.F != Read && e.F != Write, e.Type != OK && e.Type != Fail, (e.Type == Fail) == (e.Error == ""):
		return fmt.Errorf("%s of type %q with error %q is not one of %s", e.F, e.Type, e.Error, Resource)
	case e.Key == "" || e.Client != Load && !slices.Contains(v.app.Replicas, e.Client):
		return fmt.Errorf("%s at %s needs a key and a known client, not %q", e.F, Resource, e.Client)
	case e.Seq != v.seq+1:
		return fmt.Errorf("sequence number is %d, not %d", e.Seq, v.seq+1)
	case e.Version != version:
		return fmt.Errorf("version of %s is %d, not %d", e.Key, e.Version, version)
	}
	v.seq, v.versions[e.Key] = e.Seq, version
	return nil
}

// ofLoad checks an event of the load, which is a program like a replica.
func ofLoad(e *Event) error {
	switch {
	case e.F == Accepted && e.Type == OK && e.ID != "",
		(e.F == Started || e.F == Ended) && e.Type == Info,
		e.F == Missed && e.Type == Info && e.Error != "":
		return nil
	}
	return fmt.Errorf("%s of type %q with ID %q is not one of %s", e.F, e.Type, e.ID, Load)
}

func (v *Validator) answer(e *Event) error {
	known := slices.ContainsFunc(v.app.Invariants, func(i Invariant) bool { return i.Name == e.Key })
	switch {
	case e.F != Asked || !known:
		return fmt.Errorf("%s of %q is not one of %s", e.F, e.Key, e.Process)
	case e.Type == Info && e.Error != "", (e.Type == OK || e.Type == Fail) && e.Answer != nil:
		return nil
	}
	return fmt.Errorf("%s of type %q has neither an answer nor a reason why there is none", e.F, e.Type)
}

func (v *Validator) replica(e *Event) error {
	lines := []Function{Started, Ended, Holding, Releasing, Released, Did, Missed}
	switch {
	case !slices.Contains(v.app.Replicas, e.Process):
		return fmt.Errorf("process %q is not in the header", e.Process)
	case e.Type != Info || !slices.Contains(lines, e.F):
		return fmt.Errorf("%s of type %q is not one of replica %s", e.F, e.Type, e.Process)
	case e.F == Missed && e.Error == "":
		return fmt.Errorf("%s of %s has no reason", e.F, e.Process)
	case e.F == Did && e.ID == "":
		return fmt.Errorf("%s of %s has no ID", e.F, e.Process)
	case (e.F == Holding || e.F == Releasing || e.F == Released) && e.Key == "":
		return fmt.Errorf("%s of %s has no key", e.F, e.Process)
	}
	return nil
}

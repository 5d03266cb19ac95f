// Package conformance holds a client to the protocol of docs/protocol.md, rule by rule. It
// judges the client against a service that works; what the lock is worth under faults is
// judged by runs.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/protocol"
)

// Config says which client is checked, and against which servers.
type Config struct {
	Definition clients.Definition `json:"definition"`
	// Nodes are the addresses of the servers, as of clients.Config.
	Nodes  []string `json:"nodes"`
	Folder string   `json:"folder"` // that all clients share
}

const (
	// patience is how long a client may take to answer, besides what it was told to wait.
	patience = 10 * time.Second
	// timeout is what clients are told about calls to the service, as workers tell them.
	timeout = time.Second
	// tries is how often a rule is tried whose client was slower than the lease.
	tries = 3
)

// Outcome of a rule.
type Outcome string

// The outcomes.
const (
	Passed        Outcome = "passed"
	Failed        Outcome = "failed"
	NotApplicable Outcome = "not applicable" // to such a lock
	NotTried      Outcome = "not tried"      // because of something else that failed
)

// Result says what became of a rule.
type Result struct {
	Rule    string  `json:"rule"`
	Tries   string  `json:"tries"` // what is tried, in words
	Says    string  `json:"says"`  // the sentence of docs/protocol.md
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"` // of every outcome but Passed
	// Exchange is what went to and came from the clients, of a rule that failed.
	Exchange []Line `json:"exchange,omitempty"`
	// Unstarted: the program of the client could not be started, so no rule of the protocol was broken.
	Unstarted bool `json:"unstarted,omitempty"`
}

// Report of a check.
type Report struct {
	Client  string   `json:"client"` // name and version, as it says; "" if it says nothing
	Results []Result `json:"results"`
}

// Count says how many rules had an outcome.
func (r Report) Count(o Outcome) (n int) {
	for _, result := range r.Results {
		if result.Outcome == o {
			n++
		}
	}
	return n
}

// Conclusion of a check.
type Conclusion string

// The conclusions.
const (
	Conforms  Conclusion = "conforms"
	Fails     Conclusion = "fails"     // a rule
	Undecided Conclusion = "undecided" // a rule could not be tried, and none failed
)

// Conclude says what the results mean. To pass no rule is not to conform.
func (r Report) Conclude() Conclusion {
	switch {
	case r.Count(Failed) > 0:
		return Fails
	case r.Count(NotTried) > 0 || r.Count(Passed) == 0:
		return Undecided
	default:
		return Conforms
	}
}

// Run tries all rules in turn and ends all clients that it started. each is told what became
// of a rule as soon as that is known; it may be nil. The error is that of ctx.
func Run(ctx context.Context, c Config, each func(Result)) (Report, error) {
	s := newSession(c)
	defer s.dropAll()
	var report Report
	add := func(r Result) {
		report.Results = append(report.Results, r)
		if each != nil {
			each(r)
		}
	}
	outcomes := make(map[string]Outcome)
	for _, rule := range rules() {
		result := s.try(ctx, rule, outcomes)
		if err := context.Cause(ctx); err != nil {
			return report, err
		}
		outcomes[rule.name] = result.Outcome
		add(result)
	}
	for _, rule := range always() {
		add(s.judge(rule, outcomes))
	}
	report.Client = s.name
	return report, nil
}

// try tries a rule, again if the client was slower than the lease: then nothing was said.
func (s *session) try(ctx context.Context, r rule, outcomes map[string]Outcome) Result {
	if why := r.inapplicable(s.Definition); why != "" {
		return r.result(NotApplicable, why)
	}
	if missing := r.missing(outcomes); len(missing) > 0 {
		return r.result(NotTried, "needs "+strings.Join(missing, ", "))
	}
	waits := 0
	for range tries {
		if !r.asBefore {
			s.tape.restart()
		}
		err := r.do(ctx, s)
		var waited *waitedError
		if errors.As(err, &waited) {
			waits++
		}
		if waits == tries { // a slow machine would not be slow at just that call each time
			err = waited.failure
		}
		exchange := s.tape.exchange(err)
		s.settle(ctx)
		if result := s.resultOf(r, err, exchange); !errors.Is(err, errSlow) {
			return result
		}
	}
	return r.result(NotTried, fmt.Sprintf("%d times its calls took longer than the lease of %s; take a longer one", tries, s.Definition.TTL))
}

// resultOf makes a result of what trying a rule led to.
func (s *session) resultOf(r rule, err error, exchange []Line) Result {
	var failure *failureError
	var skipped *skippedError
	switch {
	case err == nil:
		return r.result(Passed, "")
	case errors.As(err, &failure):
		result := r.result(Failed, failure.reason)
		result.Exchange, result.Unstarted = exchange, failure.unstarted
		return result
	case errors.As(err, &skipped):
		return r.result(NotApplicable, skipped.reason)
	}
	if broken := ruleBrokenBy(err); broken != "" {
		s.breaks(broken, err, exchange)
		return r.result(NotTried, "the client broke the rule "+broken)
	}
	return r.result(NotTried, err.Error())
}

// judge says what became of a rule that holds all the time.
func (s *session) judge(r rule, outcomes map[string]Outcome) Result {
	if broken, there := s.broken[r.name]; there {
		result := r.result(Failed, broken.reason)
		result.Exchange = broken.exchange
		return result
	}
	if outcomes[firstRule] != Passed {
		return r.result(NotTried, "needs "+firstRule)
	}
	return r.result(Passed, "")
}

func (r rule) result(o Outcome, reason string) Result {
	return Result{Rule: r.name, Tries: r.tries, Says: r.says, Outcome: o, Reason: reason}
}

// missing are the rules that had to pass before. One that does not apply is no obstruction.
func (r rule) missing(outcomes map[string]Outcome) []string {
	return slices.DeleteFunc(slices.Clone(r.needs), func(name string) bool {
		return outcomes[name] == Passed || outcomes[name] == NotApplicable
	})
}

// failureError says how a client broke the rule that is tried.
type failureError struct {
	reason string
	// client and at say which line was wrong: one that was read, or a request without its
	// answer. at is 0 if it is none.
	client string
	at     int64
	// unstarted: there was no client to fail.
	unstarted bool
}

func (e *failureError) Error() string { return e.reason }

// skippedError says why a rule turned out not to apply.
type skippedError struct{ reason string }

func (e *skippedError) Error() string { return e.reason }

// errSlow: the lease was over before something could be told from it.
var errSlow = errors.New("the lease was over before the calls were")

// grantedLateError is errSlow of an attempt that was granted when the lease before it was over.
type grantedLateError struct{ answer protocol.Answer }

func (e *grantedLateError) Error() string { return errSlow.Error() }
func (e *grantedLateError) Unwrap() error { return errSlow }

// waitedError is errSlow of a client that seems to have waited, and what that is if it does so
// each time.
type waitedError struct {
	error
	failure *failureError
}

func (e *waitedError) Unwrap() error { return e.error }

// ruleBrokenBy names the rule that a client broke that was trying to keep another one; ""
// if err says no such thing.
func ruleBrokenBy(err error) string {
	var violation *protocol.ViolationError
	var ended *protocol.EndedError
	switch {
	case errors.As(err, &ended):
		return "stays"
	case !errors.As(err, &violation):
		return ""
	}
	switch violation.Part {
	case protocol.Lines:
		return "lines"
	case protocol.Clock:
		return "until-needs-now"
	case protocol.Until:
		return "until-time"
	case protocol.Events:
		return "events"
	case protocol.Ending:
		return "stays"
	default:
		return "answers"
	}
}

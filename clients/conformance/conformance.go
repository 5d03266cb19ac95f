// Package conformance checks a client against docs/protocol.md, rule by rule. It uses a service that works. How
// the lock behaves under faults is the subject of runs.
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

// Config has the client to check, and the servers.
type Config struct {
	Definition clients.Definition `json:"definition"`
	// Nodes are the addresses of the servers, as in clients.Config.
	Nodes  []string `json:"nodes"`
	Folder string   `json:"folder"` // shared by all clients
}

const (
	// patience is how long a client may take to answer, in addition to the time that it was asked to wait.
	patience = 10 * time.Second
	// timeout is the timeout for calls to the service that clients are told. Workers tell them the same.
	timeout = time.Second
	// tries is how often a rule is tried if the calls take longer than the lease.
	tries = 3
)

// Outcome is the outcome of a rule.
type Outcome string

// The outcomes.
const (
	Passed        Outcome = "passed"
	Failed        Outcome = "failed"
	NotApplicable Outcome = "not applicable" // the lock does not have what the rule is about
	NotTried      Outcome = "not tried"      // because of something else that failed
)

// Result is the result for a rule.
type Result struct {
	Rule    string  `json:"rule"`
	Tries   string  `json:"tries"` // what is tried, in words
	Says    string  `json:"says"`  // the sentence of docs/protocol.md
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"` // for every outcome except Passed
	// Exchange has the lines to and from the clients, for a rule that failed.
	Exchange []Line `json:"exchange,omitempty"`
	// Unstarted: the client's program could not be started, so it broke no rule of the protocol.
	Unstarted bool `json:"unstarted,omitempty"`
}

// Report is the report of a check.
type Report struct {
	Client  string   `json:"client"` // name and version as the client states them; "" if it states none
	Results []Result `json:"results"`
}

// Count returns how many rules have the outcome.
func (r Report) Count(o Outcome) (n int) {
	for _, result := range r.Results {
		if result.Outcome == o {
			n++
		}
	}
	return n
}

// Conclusion is the conclusion of a check.
type Conclusion string

// The conclusions.
const (
	Conforms  Conclusion = "conforms"
	Fails     Conclusion = "fails"     // at least one rule failed
	Undecided Conclusion = "undecided" // at least one rule could not be tried, or none passed, and none failed
)

// Conclude returns the conclusion of the results. A client that passed no rule does not conform.
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

// Run tries all rules in turn, and then ends all clients that it started. It calls each, unless nil, with each
// result as soon as it is known. The error is that of ctx.
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

// try tries a rule. It repeats the try if the calls took longer than the lease, because such a try shows
// nothing.
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
		if waits == tries { // a slow machine would not delay exactly this call each time
			err = waited.failure
		}
		exchange := s.tape.exchange(err)
		s.releaseOpen(ctx)
		if result := s.resultOf(r, err, exchange); !errors.Is(err, errSlow) {
			return result
		}
	}
	return r.result(NotTried, fmt.Sprintf("%d times its calls took longer than the lease of %s; take a longer one", tries, s.Definition.TTL))
}

// resultOf turns the error from trying a rule into a result.
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

// judge returns the result for a rule that holds throughout the check.
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

// missing returns the required rules that did not pass. A rule that does not apply is not missing.
func (r rule) missing(outcomes map[string]Outcome) []string {
	return slices.DeleteFunc(slices.Clone(r.needs), func(name string) bool {
		return outcomes[name] == Passed || outcomes[name] == NotApplicable
	})
}

// failureError says how a client broke the rule that is being tried.
type failureError struct {
	reason string
	// client and at identify the wrong line: one that was read, or a request that was not answered. at is 0 if
	// no line was wrong.
	client string
	at     int64
	// unstarted: the client's program could not be started.
	unstarted bool
}

func (e *failureError) Error() string { return e.reason }

// skippedError says why a rule turned out not to apply.
type skippedError struct{ reason string }

func (e *skippedError) Error() string { return e.reason }

// errSlow: the lease was over before the try could show anything.
var errSlow = errors.New("the lease was over before the calls were")

// grantedLateError is errSlow for an attempt that was granted when the previous lease was over.
type grantedLateError struct{ answer protocol.Answer }

func (e *grantedLateError) Error() string { return errSlow.Error() }
func (e *grantedLateError) Unwrap() error { return errSlow }

// waitedError is errSlow for a client that seems to have waited although it must not. failure is the result if
// it does so in every try.
type waitedError struct {
	error
	failure *failureError
}

func (e *waitedError) Unwrap() error { return e.error }

// ruleBrokenBy returns the rule that an error of package protocol shows to be broken; "" for none. It is not
// the rule that was being tried.
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

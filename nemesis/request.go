package nemesis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"lockcheck/clusters"
	"lockcheck/internal/spelling"
	"lockcheck/internal/yamlfile"
)

// Request asks for a kind of fault in a random schedule.
type Request struct {
	Fault  string
	Target string // "" for the kind's default
}

// String writes the request as a shell takes it, so that messages can be copied.
func (r Request) String() string {
	text := r.Fault
	if r.Target != "" {
		text += ":" + r.Target
	}
	if strings.Contains(text, " ") {
		return `"` + text + `"`
	}
	return text
}

// RequestError says why a fault cannot hit the requested target. Its text has the form of the request, because the
// user who wrote kill:foo does not know the steps that are made of it.
type RequestError struct {
	Request Request
	Err     error
	Others  []Request // for the same fault, which can be carried out here
}

func (e *RequestError) Error() string {
	text := fmt.Sprintf("%s: %v", e.Request, e.Err)
	var targets []string
	for _, other := range e.Others {
		targets = append(targets, other.Target)
	}
	near := spelling.Nearest(e.Request.Target, targets)
	switch {
	case near != "" && !canMean(e.Request.Target):
		return fmt.Sprintf("%s; did you mean %s?", text, Request{Fault: e.Request.Fault, Target: near})
	case len(e.Others) == 0:
		return text
	}
	return text + "; here write one of " + Written(e.Others)
}

// Written lists requests as a shell takes them. Of consecutive nodes such as w1 to w5 it names the first and the last.
func Written(requests []Request) string {
	var all []string
	named := func(i int) bool { return i < len(requests) && namesPattern.MatchString(requests[i].Target) }
	for i, r := range requests {
		sameRow := func(j int) bool { return named(i) && named(j) && requests[j].Target[0] == r.Target[0] }
		switch {
		case i == 0 || !sameRow(i-1):
			all = append(all, r.String())
		case !sameRow(i + 1):
			all[len(all)-1] += " to " + r.String()
		}
	}
	return strings.Join(all, ", ")
}

func (e *RequestError) Unwrap() error { return e.Err }

// CheckRequests returns a *RequestError for the first request whose target makes no sense in an environment. It leaves
// unsupported faults to Plan, because a user can have those skipped.
func CheckRequests(requests []Request, env Environment) error {
	for _, request := range requests {
		err := request.refused(env)
		var unsupported *UnsupportedError
		if err != nil && !errors.As(err, &unsupported) {
			return &RequestError{Request: request, Err: err, Others: env.Requests(request.Fault)}
		}
	}
	return nil
}

// refused returns why a request cannot be carried out; nil if it can.
func (r Request) refused(env Environment) error {
	step := randomStep(rand.New(rand.NewPCG(0, 0)), r, env)
	if err := step.check(); err != nil {
		return bare(err)
	}
	plan := Nemesis{Environment: env, Schedule: Schedule{Steps: []Step{step}}}
	return bare(plan.Plan())
}

// bare strips the step, the field and the advice from an error about a step, because a request has no steps.
func bare(err error) error {
	var step *StepError
	if errors.As(err, &step) {
		err = step.Err
	}
	var field *yamlfile.FieldError
	if errors.As(err, &field) {
		err = field.Err
	}
	var advised *advisedError
	if errors.As(err, &advised) {
		err = advised.err
	}
	return err
}

// advisedError has advice in the form of a schedule file.
type advisedError struct {
	err    error
	advice string // with the punctuation before it
}

func (e *advisedError) Error() string { return e.err.Error() + e.advice }
func (e *advisedError) Unwrap() error { return e.err }

// Requests lists the requests for a kind of fault that this environment can carry out, one for each possible target.
func (e Environment) Requests(fault string) []Request {
	targets := append(Roles(), "minority workers", "majority workers", "all workers")
	for _, nodes := range [][]*clusters.Node{e.Servers, e.Workers} {
		for _, node := range nodes {
			targets = append(targets, node.Name)
		}
	}
	var all []Request
	for _, target := range targets {
		if r := (Request{Fault: fault, Target: target}); r.refused(e) == nil {
			all = append(all, r)
		}
	}
	return all
}

// meantRequest suggests what the user meant by an item that is no fault, in the form of --nemesis; "" for no
// suggestion. Before are the requests before the item.
func meantRequest(item string, before []Request) string {
	words := strings.FieldsFunc(item, func(c rune) bool { return strings.ContainsRune(" ;+&|/", c) })
	isKind := func(word string) bool { return slices.Contains(KindNames(), word) }
	switch {
	case len(words) > 1 && !slices.ContainsFunc(words, func(word string) bool { return !isKind(word) }):
		return strings.Join(words, ",")
	case len(words) > 1 && isKind(words[0]) && canMean(strings.Join(words[1:], " ")):
		return Request{Fault: words[0], Target: strings.Join(words[1:], " ")}.String()
	case spelling.Nearest(item, KindNames()) != "": // a slip, for which the spelling is suggested
	case len(before) > 0 && canMean(item):
		return fmt.Sprintf("%s, for each fault of the list has one target", Request{Fault: before[len(before)-1].Fault, Target: item})
	}
	return ""
}

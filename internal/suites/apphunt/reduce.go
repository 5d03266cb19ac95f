package apphunt

import (
	"cmp"
	"context"
	"time"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/nemesis"
)

// reruns is how often a reduced schedule is tried at the end, and tries how often a smaller one is before it is taken
// for harmless.
const (
	reruns = 3
	tries  = 2
)

// reduction makes the schedule of one finding smaller.
type reduction struct {
	*hunt
	options runs.ApplicationOptions
	expect  suites.Expectation
	// made is how many reruns there were, of most at most.
	made, most int
}

// reduction says how many reruns there will be, and how long they take: as long as the trial each. The budget ends those
// that leave out a step, but not those that count how often what is left shows.
func (h *hunt) reduction(o runs.ApplicationOptions, what Signature, steps int, trial time.Duration) *reduction {
	r := &reduction{hunt: h, options: o, expect: what.expectation(), most: reruns}
	length := reruns * trial
	if steps > 1 {
		r.most += tries*steps + reruns
		length += min(tries*time.Duration(steps)*trial, max(0, time.Until(h.end))+tries*trial) + reruns*trial
	}
	h.progress.Step("at most %d reruns follow, of about %s each: about %s at most", r.most, rounded(trial), rounded(length))
	return r
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Second) }

// reduce leaves out steps for as long as the finding still shows without them, and counts how often it shows at the
// end. What is left may show by chance alone, where a fault must strike at the right moment: then the whole schedule stays.
func (r *reduction) reduce(ctx context.Context, s nemesis.Schedule, f *Finding) (nemesis.Schedule, error) {
	whole := s
	for i := 0; i < len(s.Steps) && len(s.Steps) > 1 && r.goesOn(); {
		smaller := s.Without(s.Steps[i].ID)
		seen, _, err := r.shows(ctx, smaller, "without "+s.Steps[i].ID, tries, 1)
		if err != nil {
			return s, err
		}
		if seen == 0 {
			i++
			continue
		}
		s = smaller
	}
	which := "what is left"
	if len(s.Steps) == 0 {
		which = "without faults"
	}
	var err error
	f.Seen, f.Reruns, err = r.shows(ctx, s, which, reruns, reruns)
	if err != nil || 2*f.Seen >= f.Reruns || len(s.Steps) == len(whole.Steps) {
		return s, err
	}
	seen, made, err := r.shows(ctx, whole, "the whole schedule", reruns, reruns)
	if seen > f.Seen {
		f.Seen, f.Reruns, s = seen, made, whole
	}
	return s, err
}

// shows counts in how many of the runs that it makes with a schedule the finding shows, as its reproduction expects it,
// and stops when it is enough.
func (r *reduction) shows(ctx context.Context, s nemesis.Schedule, which string, runsAtMost, enough int) (seen, made int, err error) {
	o := r.options
	o.Schedule, o.Nemesis = &s, ""
	e := suites.Experiment{Application: &o, Expect: r.expect}
	for range runsAtMost {
		if runs.Closed(r.stop) {
			return seen, made, nil
		}
		outcome, err := r.test(ctx, o, r.stop, quiet{r.progress})
		if outcome.History == nil {
			return seen, made, err
		}
		if outcome.Interrupted {
			return seen, made, nil
		}
		missed := e.Missed(outcome.Results)
		made++
		r.made++
		r.progress.Step("rerun %d of at most %d, %s: %s", r.made, r.most, which, cmp.Or(missed, "it shows"))
		if missed == "" {
			if seen++; seen == enough {
				break
			}
		}
	}
	return seen, made, nil
}

package reports

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Advice is what the figures of a team require of a lock.
type Advice struct {
	SectionP99   time.Duration `json:"section_p99_ns"`
	SectionMax   time.Duration `json:"section_max_ns,omitempty"` // 0 if unknown
	LongestPause time.Duration `json:"longest_pause_ns"`
	Failover     time.Duration `json:"failover_ns,omitempty"` // the longest acceptable failover; 0 for any
	Locks        []LockAdvice  `json:"locks"`
	// Unproven lists the assumptions of the advice.
	Unproven []string `json:"unproven"`
}

// LockAdvice is the advice about one lock.
type LockAdvice struct {
	Lock string `json:"lock"`
	Ends string `json:"ends_with"` // what ends the lock if its holder does not release it
	// Unfit says why the lock cannot be used; "" if it can.
	Unfit string        `json:"unfit,omitempty"`
	Lease time.Duration `json:"lease_ns,omitempty"` // 0 for a lock without a lease
	Renew bool          `json:"renew,omitempty"`    // the lease is renewed every third of its length
	Why   string        `json:"why,omitempty"`
	// FreeAfter is the longest time until another worker gets the lock of a dead holder, without the grace
	// period; 0 if the lock is free as soon as the holder's connection ends.
	FreeAfter time.Duration `json:"free_after_ns,omitempty"`
	// Servers says where the lease exceeds a limit of servers with default settings, and what to set.
	Servers string `json:"servers,omitempty"`
	// Contradiction says which two of the figures the lease does not satisfy together. ShortLease is a lease
	// that is safe only behind the guard; 0 if there is none.
	Contradiction string        `json:"contradiction,omitempty"`
	ShortLease    time.Duration `json:"short_lease_ns,omitempty"`
	Guard         string        `json:"guard"`
	RestsOn       []string      `json:"rests_on,omitempty"` // reproductions that support the advice
	// Known lists what broke the lock in Runs of the evidence, without a guard or behind this one, the worst
	// first.
	Known    []KnownBreak `json:"known,omitempty"`
	Runs     int64        `json:"runs,omitempty"`
	Commands []string     `json:"commands,omitempty"` // commands that check the advice
	// Check says how long the commands take, and which times they use if not the team's.
	Check string `json:"check,omitempty"`
}

// KnownBreak is a fault that has broken a lock.
type KnownBreak struct {
	Fault   string `json:"fault"`
	Alone   string `json:"alone"`   // what happened without a guard
	Guarded string `json:"guarded"` // what happened behind the advised guard
	Line    string `json:"line"`    // a command that repeats a run that broke the lock
}

// AdviceTerminal writes an advice for a terminal.
func AdviceTerminal(w io.Writer, a Advice, o TerminalOptions) error {
	t := newTerminal(o)
	for _, l := range a.Locks {
		t.line(t.paint(bold, clean(l.Lock)) + ", which ends with " + l.Ends)
		for _, item := range l.items() {
			t.writeIndented("  "+pad(item.name, 10), "  "+t.paint(dim, pad(item.name, 10)), item.text)
		}
		if l.Check != "" {
			t.writeIndented("  "+pad("check", 10), "  "+t.paint(dim, pad("check", 10)), clean(l.Check))
		}
		for _, command := range l.Commands {
			t.line("  " + o.CommandLine(clean(command)))
		}
		t.blank()
	}
	t.line(t.paint(bold, "not proven"))
	for _, text := range a.Unproven {
		t.writeIndented("    ", "  - ", text)
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

type adviceItem struct{ name, text string }

func (l LockAdvice) items() []adviceItem {
	if l.Unfit != "" {
		return []adviceItem{{"not fit", clean(l.Unfit)}}
	}
	var items []adviceItem
	add := func(name, text string) {
		if text != "" {
			items = append(items, adviceItem{name, clean(text)})
		}
	}
	add("lease", l.leaseText())
	add("servers", l.Servers)
	add("failover", l.failoverText())
	add("but", l.Contradiction)
	add("guard", l.guardText())
	if len(l.RestsOn) > 0 {
		add("rests on", "lockcheck repro "+strings.Join(l.RestsOn, ", ")+" and the control of each")
	}
	for _, known := range l.Known {
		add("breaks by", fmt.Sprintf("%s: %s; behind guard %s: %s; %s", known.Fault, known.Alone, l.Guard, known.Guarded, known.Line))
	}
	add("breaks by", l.nothingKnown())
	return items
}

// nothingKnown says how many runs did not break the lock; "" if a run did.
func (l LockAdvice) nothingKnown() string {
	switch {
	case len(l.Known) > 0:
		return ""
	case l.Runs == 0:
		return "unknown: there is no run of it in the guide"
	}
	return fmt.Sprintf("nothing in %s of the guide, which proves little", Many(l.Runs, "run"))
}

func (l LockAdvice) leaseText() string {
	switch {
	case l.Lease == 0:
		return "none: a paused holder keeps the lock, and all others wait for it"
	case l.Renew:
		return fmt.Sprintf("%s, renewed each third of it: %s", Length(l.Lease), l.Why)
	}
	return Length(l.Lease) + ": " + l.Why
}

func (l LockAdvice) failoverText() string {
	if l.Lease == 0 {
		return "as soon as the connection of a dead holder ends; of one that is cut off, when keep-alives give up"
	}
	return fmt.Sprintf("the lock of a dead holder is free after %s", Length(l.FreeAfter))
}

func (l LockAdvice) guardText() string {
	switch {
	case l.Guard == "fence":
		return "fence: the resource compares the token of the lock; it makes longer pauses harmless"
	case l.Lease == 0:
		return l.Guard + ": the resource compares versions; against connections that end while their holder works on"
	}
	return l.Guard + ": the resource compares versions, for the lock has no token; it makes longer pauses harmless"
}

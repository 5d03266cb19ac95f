package runs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"lockcheck/clusters"
	"lockcheck/history"
)

// leadership knows which replica of an application leads, from the answers to the question of that.
type leadership struct {
	names map[string]string // of replicas that faults may hit, by what an answer calls them

	mu     sync.Mutex
	asked  int64         // when what was answered last was asked, ns; 0 for never
	leader string        // by that answer; "" for none
	why    string        // there is none
	news   chan struct{} // closed by the next answer
}

// newLeadership is for replicas in the order of their numbers, of which faults may hit some.
func newLeadership(replicas []string, hittable []*clusters.Node) *leadership {
	l := &leadership{names: make(map[string]string), news: make(chan struct{}), why: "nobody was asked"}
	for _, node := range hittable {
		number := slices.Index(replicas, node.Name) + 1
		l.names[node.Name], l.names[strconv.Itoa(number)] = node.Name, node.Name
	}
	return l
}

// Observe sees an event.
func (l *leadership) Observe(e history.Event) {
	if e.F != history.Asked || e.Key != history.InvariantLeader {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = e.From
	l.leader, l.why = l.read(e)
	close(l.news)
	l.news = make(chan struct{})
}

// read is whom an answer names: by its first row, and of that the first column.
func (l *leadership) read(e history.Event) (leader, why string) {
	switch {
	case e.Answer == nil:
		return "", e.Error
	case len(e.Answer.Rows) == 0:
		return "", "the answer was empty"
	}
	first, _, _ := strings.Cut(e.Answer.Rows[0], "\t")
	if leader = l.names[strings.TrimSpace(first)]; leader == "" {
		why = fmt.Sprintf("the answer was %.100q, which is no replica that faults may hit", first)
	}
	return leader, why
}

// Leader is for nemesis.Environment.
func (l *leadership) Leader(ctx context.Context) (replica string, err error) {
	due := history.Now()
	for {
		l.mu.Lock()
		asked, leader, why, news := l.asked, l.leader, l.why, l.news
		l.mu.Unlock()
		if asked >= due && leader != "" {
			return leader, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			if asked < due && leader != "" {
				why = "nothing that was asked since then was answered"
			}
			return "", fmt.Errorf("no replica led: %s", why)
		}
	}
}

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

// leadership follows the answers to app.leader, and knows which replica leads.
type leadership struct {
	names map[string]string // replicas that faults may hit, by their names and numbers in answers

	mu     sync.Mutex
	asked  int64         // when the question of the last answer was asked, ns; 0 before the first answer
	leader string        // the replica in the last answer; "" for none
	why    string        // why leader is ""
	news   chan struct{} // closed by the next answer
}

// newLeadership follows the leader among replicas, which are in the order of their numbers. Only hittable replicas can be
// leaders for faults.
func newLeadership(replicas []string, hittable []*clusters.Node) *leadership {
	l := &leadership{names: make(map[string]string), news: make(chan struct{}), why: "no answer came"}
	for _, node := range hittable {
		number := slices.Index(replicas, node.Name) + 1
		l.names[node.Name], l.names[strconv.Itoa(number)] = node.Name, node.Name
	}
	return l
}

// Observe reads the answers to app.leader.
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

// read returns the replica that an answer names in the first column of its first row, or why it names none.
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

// Leader implements nemesis.Environment.Leader: it waits for an answer to a question that was asked after the call.
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
				why = "no question that was asked after the fault was due had an answer"
			}
			return "", fmt.Errorf("no replica led: %s", why)
		}
	}
}

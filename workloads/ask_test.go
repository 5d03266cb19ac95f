package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/protocol"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// TestAsk: the guard that asks admits only the holder according to the service's record. As a control, without
// a guard everyone is admitted.
func TestAsk(t *testing.T) {
	for guard, want := range map[Guard][]string{
		Ask:     {"", "ask", "ask", "", "ask", "ask"},
		NoGuard: {"", "", "", "", "", ""},
	} {
		t.Run(string(guard), func(t *testing.T) {
			service := memoryService(t)
			lock := memoryLock(t, service)
			r := runResource(t, ResourceConfig{Guard: guard, Service: &ServiceConfig{Lock: "memory", Nodes: []string{service}}})
			var got []string
			access := func(grant string, write bool) {
				a := Access{Write: write, Key: "k0", Client: "w1", Grant: grant, Value: json.RawMessage("[]")}
				got = append(got, r.access(t, a).Refused)
			}
			first := hold(t, lock, "w1-1", time.Minute)
			access("w1-1", false)
			access("w2-1", false) // it never requested the lock
			if err := lock.Release(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			access("w1-1", true) // no client holds the lock
			hold(t, lock, "w2-2", time.Minute)
			access("w2-2", true)
			access("w1-1", true) // another client holds the lock
			access("w1-1", false)
			if !slices.Equal(got, want) {
				t.Errorf("refused by %q, want %q", got, want)
			}
			events := r.finish()
			validate(t, events)
			for _, e := range events {
				if e.Note != "" || e.Type == history.Fail && e.Error != string(Ask) {
					t.Errorf("recorded %+v", e)
				}
			}
		})
	}
}

// TestAskLease: the guard that asks refuses a holder as soon as its lease ends. A fence admits it until another
// holder has made an access.
func TestAskLease(t *testing.T) {
	service := memoryService(t)
	lock := memoryLock(t, service)
	grant := hold(t, lock, "w1-1", time.Millisecond)
	clustertest.Eventually(t, patience, func() error {
		holds, err := lock.(clients.Asker).Holds(t.Context(), grant)
		if err == nil && holds {
			err = errors.New("the lease is not over yet")
		}
		return err
	})
	for guard, want := range map[Guard]string{Ask: "ask", Fence: ""} {
		t.Run(string(guard), func(t *testing.T) {
			r := runResource(t, ResourceConfig{Guard: guard, Service: &ServiceConfig{Lock: "memory", Nodes: []string{service}}})
			if got := r.access(t, Access{Key: "k0", Client: "w1", Grant: grant.ID, Token: grant.Token}).Refused; got != want {
				t.Errorf("refused by %q, want %q", got, want)
			}
		})
	}
}

func hold(t *testing.T, lock clients.Lock, id string, ttl time.Duration) clients.Grant {
	t.Helper()
	grant, err := lock.Acquire(t.Context(), clients.Attempt{Key: "k0", ID: id, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

// TestAskInVain: without an answer every access is refused, and the record says why.
func TestAskInVain(t *testing.T) {
	nobody := &ServiceConfig{Lock: "memory", Nodes: []string{filepath.Join(socketFolder(t), "n1")}}
	r := runResource(t, ResourceConfig{Guard: Ask, Service: nobody})
	if got := r.access(t, Access{Key: "k0", Client: "w1", Grant: "w1-1"}); got.Refused != string(Ask) {
		t.Errorf("answered %+v", got)
	}
	events := r.finish()
	validate(t, events)
	if e := events[0]; e.Type != history.Fail || e.Error != string(Ask) || e.Note == "" {
		t.Errorf("recorded %+v", e)
	}
}

// TestAskWhom: a resource that cannot ask does not start.
func TestAskWhom(t *testing.T) {
	for _, c := range []struct {
		name    string
		service *ServiceConfig
		fine    bool
	}{
		{"nobody", nil, false},
		{"unknown", &ServiceConfig{Lock: "chain and padlock"}, false},
		{"no server", &ServiceConfig{Lock: "memory"}, false},
		{"cannot be asked", &ServiceConfig{Lock: "none"}, false},
		{"can be asked", &ServiceConfig{Lock: "memory", Nodes: []string{"n1"}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			service, err := openService(ResourceConfig{Guard: Ask, Service: c.service}, nil)
			if (err == nil) != c.fine {
				t.Errorf("error %v", err)
			}
			_ = service.Close()
		})
	}
}

// TestAskOwnClient: a user's own client starts when its servers are ready. A failure after that is an event, as
// it is for the clients of workers.
func TestAskOwnClient(t *testing.T) {
	config := ResourceConfig{Guard: Ask, Service: &ServiceConfig{Lock: "mine", Definition: &clients.Definition{
		Name: "mine", Ask: true, Program: protocol.Command{Args: []string{"/no/such/program"}},
	}}}
	for _, c := range []struct {
		name, input string
		begun       int
	}{{"the run ends before", "", 0}, {"it is told to begin", CommandOpen + "\n", 1}} {
		t.Run(c.name, func(t *testing.T) {
			var out lockedBuffer
			if err := RunResource(t.Context(), config, strings.NewReader(c.input), &out); err != nil {
				t.Errorf("error %v", err)
			}
			events := out.events(t)
			if len(events) != c.begun || c.begun > 0 && (events[0].F != history.Client || !strings.Contains(events[0].Error, "there is no file /no/such/program")) {
				t.Errorf("events %+v, want %d that says what is wrong", events, c.begun)
			}
		})
	}
}

// ended is a user's own client that has ended.
type ended struct{ clients.Lock }

func (ended) Holds(context.Context, clients.Grant) (bool, error) { return false, errors.New("gone") }
func (ended) Failed() error                                      { return errors.New("it ended by itself") }

// TestAskFailed: a client's failure is reported at once, and only once.
func TestAskFailed(t *testing.T) {
	var out lockedBuffer
	r := &resource{
		config: ResourceConfig{Guard: Ask}, service: &lockService{asker: ended{}, lock: ended{}},
		record: NewEmitter(history.Resource, &out), deferrals: newDeferrals(), keys: make(map[string]*keyState),
	}
	var told []string
	for range 2 {
		if got := r.access(t.Context(), Access{Key: "k0", Client: "w1", Grant: "w1-1"}); got.Refused != string(Ask) {
			t.Errorf("answered %+v", got)
		}
	}
	for _, e := range out.events(t) {
		told = append(told, string(e.F)+" "+e.Error)
	}
	if want := []string{"client it ended by itself", "read ask", "read ask"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// handingOver is a lock service that confirms the first grant, and gives the lock to the second before the
// resource can act on the answer.
type handingOver struct {
	passOn func()
	gone   bool
}

func (h *handingOver) Holds(_ context.Context, g clients.Grant) (bool, error) {
	if h.gone {
		return g.ID == "second", nil
	}
	h.gone = true
	h.passOn()
	return g.ID == "first", nil
}

// TestAskOrder: an outdated answer does no harm. The second holder arrives while the first one's write waits
// for its answer, and is admitted after that write: no other access gets its turn until the write is done.
func TestAskOrder(t *testing.T) {
	var out lockedBuffer
	service := new(handingOver)
	r := &resource{
		config: ResourceConfig{Guard: Ask}, service: &lockService{asker: service},
		record: NewEmitter(history.Resource, &out), deferrals: newDeferrals(), keys: make(map[string]*keyState),
	}
	taken := func() bool {
		free := r.turn.TryLock()
		if free {
			r.turn.Unlock()
		}
		return !free
	}
	second := make(chan Answer, 1)
	var asking bool
	service.passOn = func() {
		asking = taken()
		go func() {
			second <- r.access(t.Context(), Access{Key: "k0", Client: "w2", Op: 2, Grant: "second"})
		}()
	}
	first := r.access(t.Context(), Access{Write: true, Key: "k0", Client: "w1", Op: 1, Grant: "first", Value: json.RawMessage("[]")})
	if second := <-second; first.Refused != "" || second.Refused != "" || string(second.Value) != "[]" {
		t.Errorf("the first is answered %+v, the second %+v", first, second)
	}
	if afterwards := taken(); !asking || afterwards {
		t.Errorf("the turn is taken while the service is asked: %v, after all: %v", asking, afterwards)
	}
	var order []string
	for _, e := range out.events(t) {
		order = append(order, e.Grant+" "+string(e.Type))
	}
	if want := []string{"first ok", "second ok"}; !slices.Equal(order, want) {
		t.Errorf("let in %q, want %q", order, want)
	}
}

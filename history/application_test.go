package history

import "testing"

func TestApplicationEvents(t *testing.T) {
	header := Header{
		Format: Format, Schema: SchemaVersion, Workload: WorkloadApplication,
		Application: &Application{Replicas: []string{"biller-1"}, Invariants: []Invariant{{Name: "billed-once", Kind: InvariantOnce}}},
	}
	stores := header
	stores.Application = &Application{Replicas: []string{"biller-1"}, Resource: true}
	for _, c := range []struct {
		name  string
		event Event
		valid bool
	}{
		{"a read of nothing", Event{Process: Resource, Type: OK, F: Read, Client: "biller-1", Key: "c", Seq: 1, From: 1, Time: 2}, true},
		{"a write", Event{Process: Resource, Type: OK, F: Write, Client: Load, Key: "c", Seq: 1, Version: 1, From: 1, Time: 2}, true},
		{"a write that skips a version", Event{Process: Resource, Type: OK, F: Write, Client: "biller-1", Key: "c", Seq: 1, Version: 2, From: 1, Time: 2}, false},
		{"a read of a version that there is not", Event{Process: Resource, Type: OK, F: Read, Client: "biller-1", Key: "c", Seq: 1, Version: 1, From: 1, Time: 2}, false},
		{"a refused write", Event{Process: Resource, Type: Fail, F: Write, Client: "biller-1", Key: "c", Seq: 1, Error: "old token", From: 1, Time: 2}, true},
		{"one that is refused for no reason", Event{Process: Resource, Type: Fail, F: Write, Client: "biller-1", Key: "c", Seq: 1, From: 1, Time: 2}, false},
		{"one without its number", Event{Process: Resource, Type: OK, F: Read, Client: "biller-1", Key: "c", From: 1, Time: 2}, false},
		{"one of nobody", Event{Process: Resource, Type: OK, F: Read, Client: "biller-2", Key: "c", Seq: 1, From: 1, Time: 2}, false},
		{"one without a key", Event{Process: Resource, Type: OK, F: Read, Client: "biller-1", Seq: 1, From: 1, Time: 2}, false},
		{"what is no access", Event{Process: Resource, Type: OK, F: Did, Client: "biller-1", Key: "c", ID: "j", Seq: 1, From: 1, Time: 2}, false},
	} {
		if err := Validate(&History{Header: stores, Events: []Event{c.event}}); (err == nil) != c.valid {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := Validate(&History{Header: header, Events: []Event{c.event}}); err == nil {
			t.Errorf("%s: there is no resource", c.name)
		}
	}
	for _, c := range []struct {
		name  string
		event Event
		valid bool
	}{
		{"a hold", Event{Process: "biller-1", Type: Info, F: Holding, Key: "k", From: 1, Time: 2}, true},
		{"a hold of nothing", Event{Process: "biller-1", Type: Info, F: Holding, From: 1, Time: 2}, false},
		{"a hold without an earliest time", Event{Process: "biller-1", Type: Info, F: Holding, Key: "k", Time: 2}, false},
		{"a hold of an unknown replica", Event{Process: "biller-2", Type: Info, F: Holding, Key: "k", From: 1, Time: 2}, false},
		{"work", Event{Process: "biller-1", Type: Info, F: Did, ID: "job-1", From: 1, Time: 2}, true},
		{"work without a name", Event{Process: "biller-1", Type: Info, F: Did, From: 1, Time: 2}, false},
		{"an operation of a worker", Event{Process: "biller-1", Type: Invoke, F: Acquire, Key: "k", Grant: "g", Op: 1, From: 1, Time: 2}, false},
		{"a promise", Event{Process: Load, Type: OK, F: Accepted, ID: "job-1", From: 1, Time: 2}, true},
		{"a promise of nothing", Event{Process: Load, Type: OK, F: Accepted, From: 1, Time: 2}, false},
		{"an answer", Event{Process: Asker, Type: OK, F: Asked, Key: "billed-once", Answer: &Answer{}, From: 1, Time: 2}, true},
		{"an answer of the second asker", Event{Process: Asker + "-2", Type: Fail, F: Asked, Key: "billed-once", Answer: &Answer{Count: 1}, From: 1, Time: 2}, true},
		{"an answer without content", Event{Process: Asker, Type: OK, F: Asked, Key: "billed-once", From: 1, Time: 2}, false},
		{"no answer", Event{Process: Asker, Type: Info, F: Asked, Key: "billed-once", Error: "refused", From: 1, Time: 2}, true},
		{"no answer, for no reason", Event{Process: Asker, Type: Info, F: Asked, Key: "billed-once", From: 1, Time: 2}, false},
		{"an answer of an unknown invariant", Event{Process: Asker, Type: OK, F: Asked, Key: "kept", Answer: &Answer{}, From: 1, Time: 2}, false},
	} {
		err := Validate(&History{Header: header, Events: []Event{c.event}})
		if (err == nil) != c.valid {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

package history

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestSchemas: the same run in both schemas reads the same, and names of one schema mean nothing in the
// other.
func TestSchemas(t *testing.T) {
	const (
		one = `{"format":"lockcheck-history","schema":1,"workers":["w1"],"lease_ns":3,"slack_ns":7,"require":["liveness","no-dead-grant"]}
{"index":0,"process":"w1","type":"ok","f":"acquire","grant":"a","dead":true}
{"index":1,"process":"w1","type":"ok","f":"acquire","grant":"ä","dead":true}
{"index":2,"process":"harness","type":"info","f":"phase","note":"quiet"}
{"index":3,"process":"harness","type":"info","f":"phase","note":"quiet","error":"ä"}
{"index":4,"process":"resource","type":"info","f":"deferred","note":"quiet"}
`
		foreign = `{"format":"lockcheck-history","schema":2,"workers":["w1"],"lease_ns":3,"slack_ns":7,"require":["liveness","no-dead-grant"]}
{"index":0,"process":"w1","type":"ok","f":"acquire","grant":"a","dead":true}
{"index":1,"process":"w1","type":"ok","f":"acquire","grant":"ä","dead":true}
{"index":2,"process":"harness","type":"info","f":"phase","note":"quiet"}
`
	)
	two := strings.NewReplacer(`"schema":1`, `"schema":2`, "slack_ns", "grace_ns", "no-dead-grant", "no-expired-grant", `"dead"`, `"expired"`,
		`"phase","note":"quiet"`, `"phase","note":"recovery"`).Replace(one)
	read := func(text string) *History {
		t.Helper()
		h, err := ReadAll(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	old, now := read(one), read(two)
	if !reflect.DeepEqual(old, now) {
		t.Errorf("of schema 1: %+v\nof schema 2: %+v", old, now)
	}
	e := now.Events
	if h := now.Header; h.Schema != SchemaVersion || h.Lease != 3 || h.Grace != 7 || h.Require[1] != "no-expired-grant" ||
		!e[0].Expired || !e[1].Expired || e[2].Note != PhaseRecovery || e[3].Note != PhaseRecovery || e[4].Note != "quiet" {
		t.Errorf("%+v", now)
	}
	swapped := strings.Replace(two, `"schema":2`, `"schema":1`, 1)
	for name, h := range map[string]*History{"old words in schema 2": read(foreign), "new words in schema 1": read(swapped)} {
		if h.Header.Grace != 0 || h.Events[0].Expired || h.Events[1].Expired {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// TestHeaderAnywhere: a header in another file is read the same way, and written in the newest schema.
func TestHeaderAnywhere(t *testing.T) {
	var file struct {
		Header Header `json:"header"`
	}
	for range 2 { // first as it was, then as it was written
		text, err := json.Marshal(file)
		if file.Header.Schema == 0 {
			text, err = []byte(`{"header":{"schema":1,"slack_ns":7000000000}}`), nil
		}
		if err == nil {
			file.Header = Header{}
			err = json.Unmarshal(text, &file)
		}
		if err != nil || file.Header.Schema != SchemaVersion || file.Header.Grace != 7*time.Second {
			t.Fatalf("%s: %+v, %v", text, file.Header, err)
		}
	}
}

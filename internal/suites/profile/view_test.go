package profile

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/reports"
)

// TestPage: each point is in the table, and is a dot on each curve that it has a value for. The names of
// locks are escaped.
func TestPage(t *testing.T) {
	bypassed := 0.25
	p := Profile{Time: time.Second, Think: "0s", Section: "0s", Points: []Point{
		{Lock: "redis", Alone: true, Workers: 1, Verdict: checker.Valid, Holds: 10, PerSecond: 10, P50: 1e6, P99: 2e6, P999: 3e6, Fairness: 1},
		{Lock: "redis", Alone: true, Workers: 64, Verdict: checker.Valid, Holds: 100, PerSecond: 100, P50: 1e7, P99: 2e7, P999: 3e7, Fairness: 0.5},
		{Lock: "etcd", Workers: 1, Verdict: checker.Undecided},
		{Lock: "etcd", Workers: 2, Verdict: checker.Undecided},
		{Lock: "<a>&", Workers: 2, Verdict: checker.Broken, PerSecond: 5, P50: 1e6, P99: 1e6, P999: 1e6, Bypassed: &bypassed},
	}}
	dots := 0
	for d := xml.NewDecoder(strings.NewReader(p.svg())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, p.svg())
		}
		if e, is := token.(xml.StartElement); is && e.Name.Local == "circle" {
			dots++
		}
	}
	if dots != 14 {
		t.Errorf("%d dots, want 5 of each point except for the fairness of the last", dots)
	}
	blocks := p.Page().Blocks
	table := blocks[len(blocks)-1].(reports.Table)
	for i, want := range []string{
		"redis | 1 | alone | 10 | 1 ms | 2 ms | 3 ms | 1.00 | – | valid",
		"redis | 64 | alone | 100 | 10 ms | 20 ms | 30 ms | 0.50 | – | valid",
		"etcd | 1 | contended | 0 | 0 ns | 0 ns | 0 ns | 0.00 | – | –",
		"etcd | 2 | contended | 0 | 0 ns | 0 ns | 0 ns | 0.00 | – | undecided",
		"<a>& | 2 | contended | 5 | 1 ms | 1 ms | 1 ms | 0.00 | 25 % | broken",
	} {
		var texts []string
		for _, cell := range table.Rows[i].Cells {
			texts = append(texts, cell.Text)
		}
		if got := strings.Join(texts, " | "); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
}

// TestEarlierFile: rewriting a file of an earlier version loses nothing.
func TestEarlierFile(t *testing.T) {
	text, err := os.ReadFile("testdata/profile.json")
	if err != nil {
		t.Fatal(err)
	}
	var p Profile
	err = json.Unmarshal(text, &p)
	again, marshalErr := json.Marshal(p)
	var before, after any
	if err := errors.Join(err, marshalErr, json.Unmarshal(text, &before), json.Unmarshal(again, &after)); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("%v, written again it is %s", err, again)
	}
}

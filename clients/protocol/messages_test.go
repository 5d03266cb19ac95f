package protocol_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"lockcheck/clients/protocol"
)

// TestFields: a request has exactly the fields that the page lists for its operation, including zero ones,
// because clients read them without checking whether they exist.
func TestFields(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("[a-z_]+")
	for _, op := range []protocol.Op{
		protocol.Hello, protocol.Acquire, protocol.Renew, protocol.Release, protocol.Holds, protocol.Work, protocol.Cancel,
	} {
		t.Run(string(op), func(t *testing.T) {
			listed := regexp.MustCompile("(?m)^\\| `" + string(op) + "` \\| ([^|]*) \\|").FindSubmatch(page)
			if listed == nil {
				t.Fatal("the page does not list it")
			}
			text, err := json.Marshal(protocol.Request{Op: op})
			var has map[string]any
			if err != nil || json.Unmarshal(text, &has) != nil {
				t.Fatalf("%s, %v", text, err)
			}
			want := append(name.FindAllString(string(listed[1]), -1), "id", "op")
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(has)); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

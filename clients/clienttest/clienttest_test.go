package clienttest

import (
	"slices"
	"testing"
)

// TestBehaviours: each behaviour has a unique name and a description, and there are enough of each kind.
func TestBehaviours(t *testing.T) {
	seen := make(map[string]bool)
	for _, b := range Behaviours() {
		if seen[b.Name] || b.Does == "" || b.play == nil {
			t.Errorf("%+v", b)
		}
		seen[b.Name] = true
	}
	for kind, least := range map[Kind]int{Right: 5, Mistaken: 14, Hostile: 20} {
		if names := Of(kind); len(names) < least {
			t.Errorf("%s: %q, want at least %d", kind, names, least)
		}
	}
	if env := Command("right").Env; !slices.Contains(env, raceOptions) {
		t.Errorf("environment %q lacks %s", env, raceOptions)
	}
}

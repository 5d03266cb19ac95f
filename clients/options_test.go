package clients

import (
	"slices"
	"testing"
)

func TestOptions(t *testing.T) {
	lock := Info{Name: "a", LossNotification: "never", Options: []Option{
		{Name: "b", changes: func(i *Info) { i.LossNotification = "soon" }},
		{Name: "c"},
	}}
	for _, test := range []struct {
		options            string
		known              bool
		name, notification string
		uses               []string
	}{
		{"", true, "a", "never", nil},
		{"b", true, "a+b", "soon", []string{"b"}},
		{"c+b", true, "a+c+b", "soon", []string{"b", "c"}},
		{"d", false, "", "", nil},
		{"b+d", false, "", "", nil},
		{"b+b", false, "", "", nil},
		{"b+", false, "", "", nil},
	} {
		var got optionSet
		lock.Open = func(c Config) (Lock, error) {
			got = c.options
			return nil, nil
		}
		used, known := lock.With(test.options)
		if known != test.known || used.Name != test.name || used.LossNotification != test.notification {
			t.Errorf("%q: %v, %q, loss notification %q", test.options, known, used.Name, used.LossNotification)
		}
		if !known {
			continue
		}
		if _, err := used.Open(Config{}); err != nil {
			t.Fatal(err)
		}
		for _, o := range lock.Options {
			if want := slices.Contains(test.uses, o.Name); used.Uses(o.Name) != want || got.has(o.Name) != want {
				t.Errorf("%q: option %s: %v, and its client %v", test.options, o.Name, used.Uses(o.Name), got.has(o.Name))
			}
		}
	}
	if lock.LossNotification != "never" {
		t.Error("an option changed the lock without it")
	}
}

func TestNamesLike(t *testing.T) {
	if got := NamesLike("memory+x"); !slices.Equal(got, []string{"memory", "memory+watchdog"}) {
		t.Errorf("memory+x: %v", got)
	}
	if got := NamesLike("memoria"); !slices.Equal(got, Names()) {
		t.Errorf("memoria: %v", got)
	}
}

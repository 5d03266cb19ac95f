package spelling

import "testing"

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"redis", "redis", 0}, {"", "abc", 3}, {"abc", "", 3},
		{"redlok", "redlock", 1}, {"pauze", "pause", 1}, {"ab", "ba", 2}, {"kitten", "sitting", 3}, {"redis", "etcd", 4},
	} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := editDistance(c.b, c.a); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"memory", "redis", "redlock"}
	for name, want := range map[string]string{
		"redlok": "redlock", "redi": "redis", "Redis": "redis", "memry": "memory", "mem": "memory", "red": "", "xyzzy": "", "": "", "etcd": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}

func TestUnknownError(t *testing.T) {
	for name, want := range map[string]string{
		"redlok": `unknown lock "redlok"; did you mean "redlock"?`,
		"xyzzy":  `unknown lock "xyzzy" (there are memory, redlock)`,
	} {
		if got := (&UnknownError{"lock", name, []string{"memory", "redlock"}}).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

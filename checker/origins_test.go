package checker

import "testing"

// TestIncidents: everything that one fault caused is one incident. Without an explaining fault there is one
// incident for each grant that was violated.
func TestIncidents(t *testing.T) {
	stale := func(s *script) *script {
		return s.acquire("w1", "a", 10, 11).read("a", 12, 0).acquire("w2", "b", 120, 121).read("b", 122, 0)
	}
	for _, c := range []struct {
		name string
		want int64
		s    *script
	}{
		{"nothing", 0, newScript().acquire("w1", "a", 10, 11).release("a", 20, 21)},
		{"a pause that lets two hold the lock", 1, newScript().then(stale).pause("f1", 20, 125, "w1").release("b", 140, 141).notHeld("a", 150, 151)},
		{"the same, and a lost update of it", 1, newScript().then(stale).pause("f1", 20, 125, "w1").
			write("a", 126, 1, 0, 1).write("b", 130, 2, 0, 2).release("b", 140, 141).notHeld("a", 150, 151).final("k0", "[2]")},
		{"the same, without a fault", 1, newScript().then(stale).
			write("a", 126, 1, 0, 1).write("b", 130, 2, 0, 2).release("b", 140, 141).notHeld("a", 150, 151).final("k0", "[2]")},
		{"two grants that were outlived", 2, newScript().
			acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 140, 141).notHeld("a", 150, 151).
			acquire("w1", "c", 200, 201).acquire("w2", "d", 320, 321).release("d", 340, 341).notHeld("c", 350, 351)},
		{"a loss that no write explains", 1, newScript().acquire("w1", "a", 10, 11).write("a", 12, 1, 0, 1).release("a", 20, 21).final("k0", "[]")},
	} {
		if r := c.s.end().check(t); r.Incidents != c.want {
			t.Errorf("%s: %d incidents, want %d\n%s", c.name, r.Incidents, c.want, r.dump())
		}
	}
}
